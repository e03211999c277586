import { checkNames, type Duration, knownNames } from '../../port/index.ts'
import { countOf, durationOf, numberOf, objectOf } from '../arguments.ts'

/**
 * A brake on mass eviction, for one service.
 *
 * If many instances vanish at once, the cause is more often the connection to the store, or the
 * checker's own, than a failure of all of them. Removing them all from discovery would turn a
 * disturbance into an outage. So the first few are removed as usual. Beyond a share of the service
 * within a time window, removals are delayed.
 *
 * **Promised.** It only delays, and each instance by at most `hold` from when it was lost, so it
 * cannot get stuck. An instance that is known to be dead (its lease ended and its check fails) is
 * not delayed. The brake affects what discovery shows and what a checker concludes, never the
 * store: a lease that is over is over, and its keys are free.
 *
 * It is pure state: time is an argument.
 */
export class Brake {
  readonly #limits: BrakeLimits
  /** The instances lost within the window, and when; oldest first. */
  readonly #lost = new Map<string, number>()

  constructor(limits: BrakeLimits) {
    this.#limits = limits
  }

  /**
   * Records a lost instance; `living` is how many are left. Returns until when its removal is
   * delayed, or `undefined` if it is removed at once.
   */
  lose(id: string, now: number, living: number): number | undefined {
    this.#forgetOld(now)
    this.#lost.delete(id)
    this.#lost.set(id, now)
    return this.#isOn(living) ? now + this.#limits.hold : undefined
  }

  /** The instance is back or was healthy: it no longer counts. */
  forgive(id: string): void {
    this.#lost.delete(id)
  }

  /** Whether the next lost instance would be delayed. */
  isOn(now: number, living: number): boolean {
    this.#forgetOld(now)
    return this.#isOn(living)
  }

  #isOn(living: number): boolean {
    const lost = this.#lost.size
    return lost >= this.#limits.least && lost > this.#limits.share * (living + lost)
  }

  #forgetOld(now: number): void {
    for (const [id, at] of this.#lost) {
      if (now - at < this.#limits.window) break
      this.#lost.delete(id)
    }
  }
}

export interface BrakeOptions {
  /** The share of a service that may be lost within the window without braking. Default: 0.15. */
  readonly share?: number | undefined
  /** The minimum number of lost instances: two of three are no mass eviction. Default: 3. */
  readonly least?: number | undefined
  /** Default: 1 minute. */
  readonly window?: Duration | undefined
  /** The longest delay per instance. Default: 2 minutes. */
  readonly hold?: Duration | undefined
}

const BRAKE_OPTIONS = knownNames<BrakeOptions>({
  share: true,
  least: true,
  window: true,
  hold: true,
})

export interface BrakeLimits {
  readonly share: number
  readonly least: number
  readonly window: number
  readonly hold: number
}

/** The limits of a brake. `false` means that it never brakes. */
export function brakeLimits(options: BrakeOptions | false = {}): BrakeLimits {
  if (options === false) return { share: 1, least: Infinity, window: 0, hold: 0 }
  checkNames('brake', objectOf('brake', options), BRAKE_OPTIONS)
  const { share = 0.15, least = 3, window = '1m', hold = '2m' } = options
  return {
    share: numberOf('brake.share', share, 0, 1),
    least: countOf('brake.least', least, 1, 1_000_000),
    window: durationOf('brake.window', window, '10ms', '1d'),
    hold: durationOf('brake.hold', hold, '10ms', '1d'),
  }
}
