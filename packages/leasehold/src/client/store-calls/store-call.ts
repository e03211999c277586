import { backoff, formatDuration, isLeaseholdError, LeaseholdError } from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import { Timed } from '../timers/index.ts'
import type { TimeLimit } from './time-limit.ts'

/**
 * After so many sends that failed the caller learns that the outcome is unknown, unless the caller
 * chose a time limit: then it counts alone.
 */
const OVERDUE_AFTER = 3
/** After so many sends the call is given up in the background too. */
const SENDS_MAX = 16

/**
 * What the caller of a call gets: a result now or later, or an error. Nothing if the caller has
 * its result already, or if there is no caller.
 */
export type Outcome<Result> = Result | Promise<Result> | LeaseholdError | undefined

/**
 * One call to the store, repeated until its outcome is known: see `Retries`. `answered` or `failed`
 * is called once, and `overdue` at most once, before either.
 */
export abstract class StoreCall<Answer, Result = unknown> {
  readonly core: ClientCore
  /** What the caller waits for. */
  protected result: Promise<Result> | undefined = undefined

  constructor(core: ClientCore) {
    this.core = core
  }

  /** Sending it twice has the same effect as sending it once. */
  abstract readonly repeatable: boolean
  /** Nobody needs the answer any more. */
  abstract readonly pointless: boolean
  abstract send(): Promise<Answer>
  abstract answered(answer: Answer): Outcome<Result>
  /** The store refused it, or its outcome will never be known. Nothing more is sent. */
  abstract failed(error: LeaseholdError): Outcome<Result>
  /** The outcome is unknown, and the caller has waited long enough. */
  abstract overdue(error: LeaseholdError): Outcome<Result>

  /** How long the caller waits. No limit of its own if the caller has one of a longer operation. */
  declare readonly limit?: TimeLimit
  /** Whether the caller chose how long it waits. */
  get hasChosenLimit(): boolean {
    return this.limit !== undefined && this.limit.chosenBy !== 'default'
  }

  /** The error for a caller that has waited for `limit`. */
  late?(cause: LeaseholdError | undefined): LeaseholdError

  /** Whether to try again although the store refused it. */
  insists?(error: LeaseholdError): boolean

  /** Sends it. The promise is the caller's: settled when it is answered, failed or overdue. */
  start(): Promise<Result> {
    if (this.#hasLimit) {
      const now = this.core.timers.now()
      const retries = new Retries(this, now)
      this.result = retries.result()
      retries.send(now)
      return this.result
    }
    // A call without a time limit needs no further state, unless its first send fails.
    this.result = this.trySend().then(
      (answer) => unwrapped(this.answered(answer)),
      (error) => new Retries(this, this.core.timers.now()).startAfter(storeError(error)),
    )
    return this.result
  }

  /** Sends it for a caller that has a promise of its own: the outcomes of this call are nothing. */
  startAlone(): void {
    if (this.#hasLimit) {
      const now = this.core.timers.now()
      new Retries(this, now).send(now)
    } else void this.start()
  }

  get #hasLimit(): boolean {
    return this.core.callTimeout < Infinity || this.limit?.chosenBy === 'call'
  }

  /** Sends it once. A store that throws fails like one that answers with an error. */
  trySend(): Promise<Answer> {
    try {
      return this.send()
    } catch (error) {
      return Promise.reject(error)
    }
  }
}

function unwrapped<Result>(outcome: Outcome<Result>): Result | Promise<Result> {
  if (outcome instanceof Error) throw outcome
  return outcome as Result
}

/**
 * The client's only retry.
 *
 * A call that got no answer in time, or whose outcome is unknown, is sent again: always the same
 * request. After a few sends the caller learns that the outcome is unknown, but the call continues
 * in the background, because what it may have done at the store must be found out and undone.
 */
class Retries<Answer, Result> extends Timed {
  readonly #core: ClientCore
  readonly #call: StoreCall<Answer, Result>
  /** Settles the caller's promise, unless the caller has one of its own. */
  #resolve: ((result: Result | Promise<Result>) => void) | undefined = undefined
  #reject: ((error: unknown) => void) | undefined = undefined
  #sends = 0
  #isOver = false
  #isOverdue = false
  #isWaiting = false
  /** Whether it keeps the process running: while it waits to be sent again for a caller. */
  #keepsAlive = false
  #lastError: LeaseholdError | undefined = undefined
  /** When the caller's time is over. */
  readonly #deadline: number

  constructor(call: StoreCall<Answer, Result>, now: number) {
    super()
    this.#core = call.core
    this.#call = call
    this.#deadline = call.limit === undefined ? Infinity : now + call.limit.ms
  }

  /** A promise for a caller that has none. */
  result(): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Continues a call whose first send has failed. */
  startAfter(error: LeaseholdError): Promise<Result> {
    const result = this.result()
    this.#sends = 1
    this.#onError(error, 1)
    return result
  }

  expire(now: number): void {
    if (now >= this.#deadline && !this.#isOverdue) {
      this.#reportOverdue(this.#call.late!(this.#lastError))
    }
    if (!this.#isWaiting) {
      // A store in this process has no other limit: it answers in the end.
      if (this.#core.callTimeout === Infinity) return
      this.#sendLater(
        new LeaseholdError(
          'unknown-outcome',
          `the store did not answer within ${formatDuration(this.#core.callTimeout)}`,
        ),
      )
    } else if (this.#call.pointless) this.#fail(this.#lastError!)
    else this.send(now)
  }

  /** The client closes. The caller learns it now; an answer that still arrives is handled. */
  stop(error: LeaseholdError): void {
    this.#reportOverdue(error)
    if (this.#isWaiting) this.#fail(error)
  }

  send(now: number): void {
    const send = ++this.#sends
    this.#wait(false)
    this.#expireAfter(this.#core.callTimeout, now)
    this.#call.trySend().then(
      (answer) => {
        if (this.#isOver) return
        this.#end()
        this.#settle(this.#call.answered(answer))
      },
      (error) => this.#onError(storeError(error), send),
    )
  }

  #onError(error: LeaseholdError, send: number): void {
    if (this.#isOver) return
    const isFinal =
      error.outcome === 'unknown' ? !this.#call.repeatable : !this.#call.insists?.(error)
    if (isFinal) this.#fail(error)
    // If an earlier send fails while a later one is in flight, the later answer says more.
    else if (send === this.#sends && !this.#isWaiting) this.#sendLater(error)
  }

  #sendLater(error: LeaseholdError): void {
    if (this.#call.pointless || this.#sends >= SENDS_MAX || this.#core.closed) {
      this.#fail(error)
      return
    }
    this.#lastError = error
    if (this.#sends >= OVERDUE_AFTER && !this.#call.hasChosenLimit) this.#reportOverdue(error)
    this.#wait(true)
    const wait = backoff(this.#sends - 1, this.#core.random)
    this.#expireAfter(wait, this.#core.timers.now())
  }

  /** Expires after so many milliseconds, or when the caller's time is over if that is sooner. */
  #expireAfter(ms: number, now: number): void {
    const left = this.#isOverdue ? Infinity : this.#deadline - now
    this.#core.timeouts.add(this, left < ms ? Math.max(0, left) : ms, now)
  }

  #fail(error: LeaseholdError): void {
    this.#end()
    this.#settle(this.#call.failed(error))
  }

  #end(): void {
    this.#isOver = true
    this.#wait(false)
    this.#core.timeouts.remove(this)
  }

  #reportOverdue(error: LeaseholdError): void {
    if (this.#isOverdue) return
    this.#isOverdue = true
    this.#keepAlive(false)
    this.#settle(this.#call.overdue(error))
  }

  #settle(outcome: Outcome<Result>): void {
    if (outcome instanceof Error) this.#reject?.(outcome)
    else this.#resolve?.(outcome as Result)
  }

  /** Its timer alone would let the process end before the call is sent again. */
  #wait(isWaiting: boolean): void {
    this.#isWaiting = isWaiting
    this.#keepAlive(isWaiting && !this.#isOverdue)
  }

  #keepAlive(keepsAlive: boolean): void {
    if (keepsAlive === this.#keepsAlive) return
    this.#keepsAlive = keepsAlive
    const { keepAlive } = this.#core
    if (keepsAlive) keepAlive.enter()
    else keepAlive.leave()
  }
}

/** Whatever a store threw, as a `LeaseholdError`. Another error says nothing about the outcome. */
export function storeError(thrown: unknown): LeaseholdError {
  if (isLeaseholdError(thrown)) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new LeaseholdError('unknown-outcome', `the store failed: ${message}`, { cause: thrown })
}

export function closedError(): LeaseholdError {
  return new LeaseholdError('closed', 'this client was closed: open another one')
}
