import type { Log, Position } from '../log/index.ts'
import { type Clock, LeaseholdError } from '../port/index.ts'
import { because, isFinal } from './faults.ts'
import { within } from './within.ts'

/** After the log could not be asked, it is asked again after so long. */
const AGAIN_MS = 50

interface Waiter {
  readonly position: Position
  readonly resolve: () => void
  readonly reject: (error: LeaseholdError) => void
}

export interface CatchUpOptions {
  readonly log: Log
  readonly clock: Clock
  readonly timeout: number
  /** What is wrong with following the log at present, if anything is known to be. */
  readonly trouble: () => unknown
  /** The log ends before what was applied: it may have lost entries. */
  readonly onBehind: () => void
}

/** Lets reads wait until the replica has applied what the log had when they were asked for. */
export class CatchUp {
  readonly #options: CatchUpOptions
  #position: Position = 0
  #waiters: Waiter[] = []
  #current: Promise<void> | undefined
  #next: Promise<void> | undefined
  #failure: LeaseholdError | undefined
  #isPaused = false

  constructor(options: CatchUpOptions) {
    this.#options = options
  }

  /** Fulfilled when everything has been applied that was acknowledged to anybody before this call. */
  caughtUp(): Promise<void> {
    if (this.#current === undefined) {
      this.#current = this.#ask().finally(() => {
        this.#current = undefined
      })
      return this.#current
    }
    // The question that is under way may have been answered before this call: all later ones share
    // the next.
    this.#next ??= this.#current
      .catch(() => {})
      .then(() => {
        this.#next = undefined
        return this.caughtUp()
      })
    return this.#next
  }

  /** Everything up to this position has been applied. */
  applied(position: Position): void {
    this.#position = position
    this.#release()
  }

  /** What has been applied may be wrong: nobody is answered until `resume`. */
  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#release()
  }

  /** Nothing will be applied any more. */
  fail(error: LeaseholdError): void {
    this.#failure = error
    for (const { reject } of this.#waiters.splice(0)) reject(error)
  }

  #release(): void {
    if (this.#waiters.length === 0 || this.#isPaused) return
    const ready = this.#waiters.filter((each) => each.position <= this.#position)
    this.#waiters = this.#waiters.filter((each) => each.position > this.#position)
    for (const { resolve } of ready) resolve()
  }

  async #ask(): Promise<void> {
    const { clock, timeout } = this.#options
    const deadline = clock.now() + timeout
    const position = await this.#tail(deadline)
    if (this.#failure) throw this.#failure
    if (this.#position >= position && !this.#isPaused) return
    await new Promise<void>((resolve, reject) => {
      const waiter = { position, resolve, reject }
      this.#waiters.push(waiter)
      clock.timer(deadline, () => {
        this.#waiters = this.#waiters.filter((each) => each !== waiter)
        reject(this.#late('followed', this.#options.trouble()))
      })
    })
  }

  /** Asks until the log answers. A refusal is final: asking again would not help. */
  async #tail(deadline: number): Promise<Position> {
    const { log, clock, onBehind } = this.#options
    for (;;) {
      const applied = this.#position
      let trouble: unknown
      try {
        const tail = await within(clock, deadline, log.tail())
        if (tail >= applied || this.#position < applied) return tail
        onBehind()
        trouble = new Error(`it ends at ${tail}, and ${applied} was read before`)
      } catch (error) {
        if (isFinal(error)) throw error
        trouble = error
      }
      if (this.#failure) throw this.#failure
      if (clock.now() + AGAIN_MS >= deadline) throw this.#late('reached', trouble)
      await new Promise<void>((resolve) => {
        clock.timer(clock.now() + AGAIN_MS, resolve, true)
      })
    }
  }

  #late(what: string, cause: unknown): LeaseholdError {
    const message = `the log could not be ${what} for ${this.#options.timeout} ms${because(cause)}: nothing was read. Check the engine, and try again`
    return new LeaseholdError('timeout', message, { cause })
  }
}
