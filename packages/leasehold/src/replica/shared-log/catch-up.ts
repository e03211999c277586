import type { Log, Position } from '../../log/index.ts'
import { type Clock, LeaseholdError, withTimeout } from '../../port/index.ts'
import { causeSuffix, isFinal, noAnswer } from '../faults.ts'

/** The wait before the log is asked again after a failure. */
const RETRY_MS = 50

interface Waiter {
  readonly position: Position
  readonly resolve: () => void
  readonly reject: (error: LeaseholdError) => void
}

export interface CatchUpOptions {
  readonly log: Log
  readonly clock: Clock
  readonly timeout: number
  /** Why following the log fails at present, if that is known. */
  readonly lastError: () => unknown
  /** The log ends before the last applied entry: it may have lost entries. */
  readonly onLogBehind: () => void
}

/** Lets a read wait until the replica has applied everything that was in the log when it began. */
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

  /** Fulfilled when every entry that was acknowledged before this call has been applied. */
  caughtUp(): Promise<void> {
    if (this.#current === undefined) {
      this.#current = this.#catchUp().finally(() => {
        this.#current = undefined
      })
      return this.#current
    }
    // The log may have answered the current request before this call, so it cannot be shared. All
    // later calls share the next request.
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

  /** The applied state may be wrong: all calls wait until `resume`. */
  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#release()
  }

  /** No more entries will be applied: fails all calls. */
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

  async #catchUp(): Promise<void> {
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
        reject(this.#timeoutError('follow', this.#options.lastError()))
      })
    })
  }

  /** Asks the log for its tail until it answers. Does not repeat a permanent refusal. */
  async #tail(deadline: number): Promise<Position> {
    const { log, clock, onLogBehind } = this.#options
    for (;;) {
      const applied = this.#position
      let lastError: unknown
      try {
        const tail = await withTimeout(clock, deadline, log.tail(), noAnswer)
        if (tail >= applied || this.#position < applied) return tail
        onLogBehind()
        lastError = new Error(`it ends at ${tail}, but ${applied} was read before`)
      } catch (error) {
        if (isFinal(error)) throw error
        lastError = error
      }
      if (this.#failure) throw this.#failure
      if (clock.now() + RETRY_MS >= deadline) throw this.#timeoutError('reach', lastError)
      await new Promise<void>((resolve) => {
        clock.timer(clock.now() + RETRY_MS, resolve, true)
      })
    }
  }

  #timeoutError(action: string, cause: unknown): LeaseholdError {
    const message = `could not ${action} the log for ${this.#options.timeout} ms${causeSuffix(cause)}: nothing was read. Check the engine and try again`
    return new LeaseholdError('timeout', message, { cause })
  }
}
