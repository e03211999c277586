import { isLeaseholdError, LeaseholdError } from '../port/index.ts'
import type { ClientCore } from './core.ts'
import { Timed } from './timeouts.ts'

/** After so many unanswered sends the caller is told that the outcome is unknown. */
const PATIENCE = 3
/** After so many the call is given up in the background too. */
const SENDS_MAX = 16
const REST_MIN_MS = 50
const REST_MAX_MS = 5000

/**
 * One call of the store, seen through to its end.
 *
 * A call that was not answered in time, or whose outcome is unknown, is sent again, always the same
 * request, if that is harmless (`repeatable`). When it has been unknown for long enough the caller
 * is told so (`overdue`), but the call goes on behind its back: what it may have done at the store
 * must be found out, so that it can be undone.
 *
 * Each of `answered` and `failed` is called at most once and excludes the other; `overdue` at most
 * once, and before either.
 */
export abstract class Call<Answer> extends Timed {
  protected readonly core: ClientCore
  #sends = 0
  #over = false
  #toldOverdue = false
  #resting = false
  #lastError: LeaseholdError | undefined = undefined

  constructor(core: ClientCore) {
    super()
    this.core = core
  }

  protected abstract send(): Promise<Answer>
  protected abstract answered(answer: Answer): void
  /** It was refused, or will never be known; nothing more is sent. */
  protected abstract failed(error: LeaseholdError): void
  protected abstract overdue(error: LeaseholdError): void
  /** Sending it again is the same as sending it once. */
  protected abstract get repeatable(): boolean
  /** Nobody needs an answer any more. */
  protected abstract get pointless(): boolean
  /** Whether a refusal is no final answer, because what was asked for must be done. */
  protected insists(_error: LeaseholdError): boolean {
    return false
  }

  /** It will be sent again after a while. */
  protected rests(): void {}

  start(): void {
    const send = ++this.#sends
    this.#resting = false
    this.core.timeouts.add(this, this.core.settings.callTimeout)
    let promise: Promise<Answer>
    try {
      promise = this.send()
    } catch (error) {
      promise = Promise.reject(error)
    }
    promise.then(
      (answer) => this.#onAnswer(answer),
      (error) => this.#onError(error, send),
    )
  }

  expire(): void {
    if (this.#resting) {
      if (this.pointless) this.#giveUp(this.#lastError!)
      else this.start()
      return
    }
    const error = new LeaseholdError(
      'unknown-outcome',
      `the store did not answer within ${this.core.settings.callTimeout}ms: what was asked for may have been done, and is being undone`,
    )
    if (this.repeatable) this.#uncertain(error)
    // The answer may still come, and is then dealt with.
    else this.#tellOverdue(error)
  }

  /** The client is closed: the caller is told, but an answer that still comes is dealt with. */
  stop(error: LeaseholdError): void {
    this.#tellOverdue(error)
    if (this.#resting) this.#giveUp(error)
  }

  #onAnswer(answer: Answer): void {
    if (this.#over) return
    this.#over = true
    this.core.timeouts.remove(this)
    this.answered(answer)
  }

  #onError(thrown: unknown, send: number): void {
    if (this.#over) return
    const error = storeError(thrown)
    if (error.outcome === 'refused' && !this.insists(error)) {
      this.core.timeouts.remove(this)
      this.#giveUp(error)
      return
    }
    // An earlier send failed while a later one is under way, which will tell more.
    if (send !== this.#sends || this.#resting) return
    this.core.timeouts.remove(this)
    this.#uncertain(error)
  }

  #uncertain(error: LeaseholdError): void {
    if (!this.repeatable || this.pointless || this.#sends >= SENDS_MAX || this.core.closed) {
      this.#giveUp(error)
      return
    }
    this.#lastError = error
    if (this.#sends >= PATIENCE) this.#tellOverdue(error)
    this.#resting = true
    this.rests()
    this.core.timeouts.add(this, restFor(this.#sends, this.core))
  }

  #giveUp(error: LeaseholdError): void {
    this.#over = true
    this.failed(error)
  }

  #tellOverdue(error: LeaseholdError): void {
    if (this.#toldOverdue) return
    this.#toldOverdue = true
    this.overdue(error)
  }
}

function restFor(sends: number, core: ClientCore): number {
  const longest = Math.min(REST_MIN_MS * 2 ** (sends - 1), REST_MAX_MS)
  return Math.ceil(longest * (0.5 + 0.5 * core.random.next()))
}

/** Whatever a store threw, as an error of ours. A stranger's error says nothing of the outcome. */
export function storeError(thrown: unknown): LeaseholdError {
  if (isLeaseholdError(thrown)) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new LeaseholdError('unknown-outcome', `the store failed: ${message}`, { cause: thrown })
}
