import { backoff, isLeaseholdError, LeaseholdError } from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import type { Timed } from '../timers/index.ts'

/** After so many sends without an answer the caller learns that the outcome is unknown. */
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

  /** Whether to try again although the store refused it. */
  insists?(error: LeaseholdError): boolean

  /** Sends it. The promise is the caller's: settled when it is answered, failed or overdue. */
  start(): Promise<Result> {
    // A call without a time limit needs no further state, unless its first send fails.
    this.result =
      this.core.callTimeout < Infinity
        ? new Retries(this).start()
        : this.trySend().then(
            (answer) => unwrapped(this.answered(answer)),
            (error) => new Retries(this).startAfter(storeError(error)),
          )
    return this.result
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
class Retries<Answer, Result> implements Timed {
  timeout: Timed['timeout'] = undefined
  readonly #core: ClientCore
  readonly #call: StoreCall<Answer, Result>
  #resolve!: (result: Result | Promise<Result>) => void
  #reject!: (error: unknown) => void
  readonly #result = new Promise<Result>((resolve, reject) => {
    this.#resolve = resolve
    this.#reject = reject
  })
  #sends = 0
  #isOver = false
  #isOverdue = false
  #isWaiting = false
  /** Whether it keeps the process running: while it waits to be sent again for a caller. */
  #keepsAlive = false
  #lastError: LeaseholdError | undefined = undefined

  constructor(call: StoreCall<Answer, Result>) {
    this.#core = call.core
    this.#call = call
  }

  start(): Promise<Result> {
    this.#send()
    return this.#result
  }

  /** Continues a call whose first send has failed. */
  startAfter(error: LeaseholdError): Promise<Result> {
    this.#sends = 1
    this.#onError(error, 1)
    return this.#result
  }

  expire(): void {
    if (!this.#isWaiting) {
      this.#sendLater(
        new LeaseholdError(
          'unknown-outcome',
          `the store did not answer within ${this.#core.callTimeout}ms. The request may have been carried out; the client is undoing it.`,
        ),
      )
    } else if (this.#call.pointless) this.#fail(this.#lastError!)
    else this.#send()
  }

  /** The client closes. The caller learns it now; an answer that still arrives is handled. */
  stop(error: LeaseholdError): void {
    this.#reportOverdue(error)
    if (this.#isWaiting) this.#fail(error)
  }

  #send(): void {
    const send = ++this.#sends
    this.#wait(false)
    this.#core.timeouts.add(this, this.#core.callTimeout)
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
    // If an earlier send fails while a later one is under way, the later one tells more.
    else if (send === this.#sends && !this.#isWaiting) this.#sendLater(error)
  }

  #sendLater(error: LeaseholdError): void {
    if (this.#call.pointless || this.#sends >= SENDS_MAX || this.#core.closed) {
      this.#fail(error)
      return
    }
    this.#lastError = error
    if (this.#sends >= OVERDUE_AFTER) this.#reportOverdue(error)
    this.#wait(true)
    this.#core.timeouts.add(this, Math.ceil(backoff(this.#sends - 1, this.#core.random)))
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
    if (outcome instanceof Error) this.#reject(outcome)
    else this.#resolve(outcome as Result)
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
