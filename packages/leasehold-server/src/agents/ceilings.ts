import {
  type Clock,
  type Duration,
  formatDuration,
  invalid,
  milliseconds,
  type Timer,
} from 'leasehold/port'
import { isoTime } from './hold-note.ts'
import { type HoldRecord, maximumText } from './hold-record.ts'

/** Limits against forgetting, in milliseconds. */
export interface Ceilings {
  /** The longest time that one hold may last. */
  readonly maxHold: number
  /** Everything is released if no tool was called for this long. */
  readonly idle: number
  /** A hold that came after waiting is released if its agent does not ask for it within this time. */
  readonly turn: number
}

export const DEFAULT_CEILINGS: Ceilings = {
  maxHold: 8 * 3_600_000,
  idle: 2 * 3_600_000,
  turn: 10 * 60_000,
}

const IDLE_MIN_MS = 1000

/** The idle limit in milliseconds, from a duration under this name. */
export function idleLimit(given: string, name: string, max = Infinity): number {
  const ms = milliseconds(given as Duration, name)
  if (ms < IDLE_MIN_MS)
    throw invalid(`${name} is ${given}: use at least ${formatDuration(IDLE_MIN_MS)}`)
  if (ms > max) throw invalid(`${name} is ${given}: use at most ${formatDuration(max)}`)
  return ms
}

export interface CeilingTimerOptions {
  readonly clock: Clock
  readonly ceilings: Ceilings
  /** The holds that are held or wait. */
  readonly open: () => readonly HoldRecord[]
  /** Called after holds were released because of a ceiling. */
  readonly ended: () => void
}

/** Releases the holds of one connection that reach a ceiling. */
export class CeilingTimer {
  readonly #options: CeilingTimerOptions
  #lastCall: number
  #timer: Timer | undefined = undefined
  #isStopped = false

  constructor(options: CeilingTimerOptions) {
    this.#options = options
    this.#lastCall = options.clock.now()
  }

  /** When an agent last called. */
  get lastCall(): number {
    return this.#lastCall
  }

  /** An agent has called: the idle time starts again. */
  touch(): void {
    this.#lastCall = this.#options.clock.now()
    this.schedule()
  }

  /** The agent seems to be gone: what it has ends after this time, unless it calls again. */
  expectSilence(ms: number): void {
    const { clock, ceilings } = this.#options
    this.#lastCall = Math.min(this.#lastCall, clock.now() + ms - ceilings.idle)
    this.schedule()
  }

  /** Sets the timer for the next ceiling. Called after every change of a hold. */
  schedule(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    const { clock, open } = this.#options
    const deadlines = open().map((record) => this.#deadlineOf(record))
    if (deadlines.length === 0 || this.#isStopped) return
    this.#timer = clock.timer(Math.min(...deadlines), () => this.#enforce())
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  /** When holds end, for the agent. */
  get text(): string | undefined {
    const { ceilings, open } = this.#options
    const held = open().filter(({ state }) => state === 'held')
    if (held.length === 0) return undefined
    const first = held.reduce((a, b) => (a.latest <= b.latest ? a : b))
    const idle = isoTime(this.#lastCall + ceilings.idle)
    return `Your holds are released if no leasehold tool is called before ${idle} (${formatDuration(ceilings.idle)} idle). ${first.handle} ends at ${isoTime(first.latest)} at the latest. Release what you no longer need`
  }

  #deadlineOf(record: HoldRecord): number {
    const { turn, idle } = this.#options.ceilings
    const idleAt = this.#lastCall + idle
    if (record.state !== 'held') return idleAt
    const turnAt = record.isReported ? Infinity : record.heldAt! + turn
    return Math.min(idleAt, turnAt, record.latest)
  }

  #enforce(): void {
    const { clock, open, ended } = this.#options
    const now = clock.now()
    for (const record of open()) {
      if (this.#deadlineOf(record) > now) continue
      const why = this.#ceilingReached(record, now)
      void record.release(now).catch(() => {})
      record.lose(why, now)
    }
    ended()
  }

  #ceilingReached(record: HoldRecord, now: number): string {
    const { idle, turn, maxHold } = this.#options.ceilings
    if (record.latest <= now) return maximumText(maxHold)
    if (this.#lastCall + idle <= now) {
      return `no leasehold tool was called for ${formatDuration(idle)}, the idle limit, so it was released`
    }
    return `its turn came, and nobody called wait within ${formatDuration(turn)}, so it was released`
  }
}
