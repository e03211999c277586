import type { Refused } from '../../kernel/index.ts'
import { type Clock, LeaseholdError, type LeaseId, type Timer } from '../../port/index.ts'
import { causeSuffix } from '../faults.ts'

const NO_LEASES: readonly LeaseId[] = []

/** A call whose answer comes when its entry has been applied. */
export class Call {
  /** When its caller stops waiting for it. */
  readonly deadline: number
  readonly promise: Promise<unknown>
  /** The leases that it renews. Empty if it has a command or only reads. */
  readonly renews: readonly LeaseId[]
  /** Where its command starts in the buffer of `CallQueue`, and its size: 0 if it only reads. */
  start = 0
  size = 0
  /** The index of its command in its entry. */
  at = 0
  /** Its entry may be in the log. */
  isSent = false
  isSettled = false
  readonly #settled: (call: Call) => void
  #resolve!: (answer: unknown) => void
  #reject!: (error: unknown) => void

  constructor(renews: readonly LeaseId[], deadline: number, settled: (call: Call) => void) {
    this.renews = renews
    this.deadline = deadline
    this.#settled = settled
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Settles the call with the kernel's answer, which may be a refusal. */
  answer(answer: unknown): void {
    this.#settle()
    const { outcome, refusal } = (answer ?? {}) as Partial<Refused>
    if (outcome === 'refused') this.#reject(LeaseholdError.from(refusal!))
    else this.#resolve(answer)
  }

  fail(error: unknown): void {
    this.#settle()
    this.#reject(error)
  }

  #settle(): void {
    this.isSettled = true
    this.#settled(this)
  }
}

/** Fails calls that take too long. All have the same timeout, so they end in order. */
export class CallDeadlines {
  readonly #clock: Clock
  readonly #timeout: number
  readonly #lastError: () => unknown
  readonly #waiting = new Set<Call>()
  #timer: Timer | undefined

  /** `lastError` returns what is wrong with the log at present, if that is known. */
  constructor(clock: Clock, timeout: number, lastError: () => unknown) {
    this.#clock = clock
    this.#timeout = timeout
    this.#lastError = lastError
  }

  begin(renews: readonly LeaseId[] = NO_LEASES): Call {
    const deadline = this.#clock.now() + this.#timeout
    const call = new Call(renews, deadline, this.#settled)
    this.#waiting.add(call)
    this.#startTimer()
    return call
  }

  /** Fails all calls at once. */
  fail(error: (call: Call) => LeaseholdError): void {
    this.#timer?.cancel()
    for (const call of [...this.#waiting]) call.fail(error(call))
  }

  /** The timer keeps the process running, so it is cancelled when no call waits. */
  readonly #settled = (call: Call): void => {
    this.#waiting.delete(call)
    if (this.#waiting.size > 0) return
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #startTimer(): void {
    if (this.#timer) return
    const [first] = this.#waiting
    if (first === undefined) return
    this.#timer = this.#clock.timer(first.deadline, () => this.#failExpired(), true)
  }

  #failExpired(): void {
    this.#timer = undefined
    const now = this.#clock.now()
    for (const call of this.#waiting) {
      if (call.deadline > now) break
      call.fail(this.#timeoutError(call))
    }
    this.#startTimer()
  }

  #timeoutError({ isSent }: Call): LeaseholdError {
    const cause = this.#lastError()
    const why = causeSuffix(cause)
    return isSent
      ? new LeaseholdError(
          'unknown-outcome',
          `the log did not answer within ${this.#timeout} ms${why}. The call may have been carried out, or may still be: read, or repeat it with its request id`,
          { cause },
        )
      : new LeaseholdError(
          'timeout',
          `the log could not be reached for ${this.#timeout} ms${why}. Nothing was sent: check the engine and try again`,
          { cause },
        )
  }
}
