import type { Duration } from '../../port/index.ts'
import { countOf, durationOf, numberOf, objectOf } from '../arguments.ts'

/**
 * A brake on mass eviction, for one service.
 *
 * When many instances of a service vanish at once, it is more often the line to the store that broke,
 * or the checker's own, than all of them. Throwing them all out of discovery makes an outage out of a
 * disturbance. So the first few go as ever; beyond a share of the service within a window, those who
 * go are held back for a while.
 *
 * **Promised.** It only ever delays, and by no more than `hold` for each instance, counted from when
 * that one was lost: it cannot get stuck, however many are gone for good and whatever comes or does
 * not come after. What is known to be dead, its lease ended and its check failing, is not held
 * back at all. It works on what discovery shows and on what a checker concludes. It never delays the
 * store: a lease that is over is over, and its keys are free.
 *
 * A pure state: time comes in as an argument.
 */
export class Brake {
  readonly #limits: BrakeLimits
  /** Who was lost within the window, and when; oldest first. */
  readonly #lost = new Map<string, number>()

  constructor(limits: BrakeLimits) {
    this.#limits = limits
  }

  /**
   * One was lost; `living` is how many are left. Answers until when it is held back, or with
   * `undefined` where it goes at once.
   */
  lose(id: string, now: number, living: number): number | undefined {
    this.#forgetOld(now)
    this.#lost.delete(id)
    this.#lost.set(id, now)
    return this.#isOn(living) ? now + this.#limits.hold : undefined
  }

  /** It is back, or was well all along: it does not count any more. */
  forgive(id: string): void {
    this.#lost.delete(id)
  }

  /** Whether the next one that is lost would be held back. */
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
  /** The share of a service that may be lost within the window without a brake. 0.15 if not given. */
  readonly share?: number | undefined
  /** It takes at least so many: two of three is no mass. 3 if not given. */
  readonly least?: number | undefined
  /** 1 minute if not given. */
  readonly window?: Duration | undefined
  /** How long each one is held back at most. 2 minutes if not given. */
  readonly hold?: Duration | undefined
}

export interface BrakeLimits {
  readonly share: number
  readonly least: number
  readonly window: number
  readonly hold: number
}

/** The limits of a brake; with `false` one that never brakes. */
export function brakeLimits(options: BrakeOptions | false = {}): BrakeLimits {
  if (options === false) return { share: 1, least: Infinity, window: 0, hold: 0 }
  objectOf('brake', options)
  const { share = 0.15, least = 3, window = '1m', hold = '2m' } = options
  return {
    share: numberOf('brake.share', share, 0, 1),
    least: countOf('brake.least', least, 1, 1_000_000),
    window: durationOf('brake.window', window, '10ms', '1d'),
    hold: durationOf('brake.hold', hold, '10ms', '1d'),
  }
}
