import type { Refused } from '../kernel/index.ts'
import { type Clock, LeaseholdError, type LeaseId, type Timer } from '../port/index.ts'
import { because } from './faults.ts'

const NO_LEASES: readonly LeaseId[] = []

/** A call of which the answer comes when the log has carried it out. */
export class Call {
  /** When its caller stops waiting. */
  readonly deadline: number
  readonly promise: Promise<unknown>
  /** The leases that it renews. Empty if it has a command, or only reads. */
  readonly renews: readonly LeaseId[]
  /** Where `CallQueue` has its command, and how many bytes that has: 0 if it only reads. */
  start = 0
  size = 0
  /** The place of its command in the entry that it was sent with. */
  at = 0
  /** It may be in the log. */
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

  /** What the kernel has answered, which may be a refusal. */
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

/** Ends the wait of calls when their time is over. All wait for equally long, so they end in order. */
export class CallDeadlines {
  readonly #clock: Clock
  readonly #timeout: number
  readonly #trouble: () => unknown
  readonly #waiting = new Set<Call>()
  #timer: Timer | undefined

  /** `trouble` says what is wrong with the log at present, if anything is known to be. */
  constructor(clock: Clock, timeout: number, trouble: () => unknown) {
    this.#clock = clock
    this.#timeout = timeout
    this.#trouble = trouble
  }

  begin(renews: readonly LeaseId[] = NO_LEASES): Call {
    const deadline = this.#clock.now() + this.#timeout
    const call = new Call(renews, deadline, this.#over)
    this.#waiting.add(call)
    this.#arm()
    return call
  }

  /** Ends all waiting at once. */
  fail(error: (call: Call) => LeaseholdError): void {
    this.#timer?.cancel()
    for (const call of [...this.#waiting]) call.fail(error(call))
  }

  /** The timer keeps the process running, so there is none while no call waits. */
  readonly #over = (call: Call): void => {
    this.#waiting.delete(call)
    if (this.#waiting.size > 0) return
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #arm(): void {
    if (this.#timer) return
    const [first] = this.#waiting
    if (first === undefined) return
    this.#timer = this.#clock.timer(first.deadline, () => this.#look(), true)
  }

  #look(): void {
    this.#timer = undefined
    const now = this.#clock.now()
    for (const call of this.#waiting) {
      if (call.deadline > now) break
      call.fail(this.#late(call))
    }
    this.#arm()
  }

  #late({ isSent }: Call): LeaseholdError {
    const cause = this.#trouble()
    const why = because(cause)
    return isSent
      ? new LeaseholdError(
          'unknown-outcome',
          `the log did not answer within ${this.#timeout} ms${why}: it may have been carried out, or may be yet. Read, or repeat it with its request id`,
          { cause },
        )
      : new LeaseholdError(
          'timeout',
          `the log could not be reached for ${this.#timeout} ms${why}: nothing was sent. Check the engine, and try again`,
          { cause },
        )
  }
}
