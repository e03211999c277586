import { isLeaseholdError, LeaseholdError } from '../port/index.ts'
import type { ClientCore } from './core.ts'
import { restAfter } from './patience.ts'
import type { Timed, Timeouts } from './timeouts.ts'

/** After so many unanswered sends the caller is told that the outcome is unknown. */
const PATIENCE = 3
/** After so many the call is given up in the background too. */
const SENDS_MAX = 16

/**
 * Something to ask of the store, and what to do with the answer. Each of `answered` and `failed` is
 * called at most once and excludes the other; `overdue` at most once, and before either.
 */
export interface Errand<Answer> {
  /** Sending it again is the same as sending it once. */
  readonly repeatable: boolean
  /** Nobody needs an answer any more. */
  readonly pointless: boolean
  send(): Promise<Answer>
  answered(answer: Answer): void
  /** It was refused, or will never be known; nothing more is sent. */
  failed(error: LeaseholdError): void
  /** The outcome is unknown, and whoever waits has waited long enough. */
  overdue(error: LeaseholdError): void
  /** Whether a refusal is no final answer, because what was asked for must be done. */
  insists?(error: LeaseholdError): boolean
}

/**
 * Sees an errand through to its end.
 *
 * A store in this process always answers, so there is nothing to watch over. Any other may not: a
 * call that was not answered in time, or whose outcome is unknown, is sent again, always the same
 * request. When it has been unknown for long enough the caller is told, but the call goes on behind
 * its back: what it may have done at the store must be found out, so that it can be undone.
 */
export function carryOut<Answer>(core: ClientCore, errand: Errand<Answer>): void {
  if (!core.inProcess) {
    new Call(core, errand).start()
    return
  }
  sendOff(errand).then(
    (answer) => errand.answered(answer),
    (error) => carryOn(core, errand, storeError(error)),
  )
}

/** Goes on with an errand that was sent once and failed. */
export function carryOn<Answer>(
  core: ClientCore,
  errand: Errand<Answer>,
  error: LeaseholdError,
): void {
  if (isFinal(error, errand)) errand.failed(error)
  else new Call(core, errand).again(error)
}

/** An errand that can be sent again: all can that are for a store outside of this process. */
class Call<Answer> implements Timed {
  timeout: Timed['timeout'] = undefined
  readonly #core: ClientCore
  readonly #errand: Errand<Answer>
  #sends = 0
  #over = false
  #toldOverdue = false
  #resting = false
  /** Whether it keeps the process running: while it rests, and somebody waits for the answer. */
  #keeping = false
  #lastError: LeaseholdError | undefined = undefined

  constructor(core: ClientCore, errand: Errand<Answer>) {
    this.#core = core
    this.#errand = errand
  }

  start(): void {
    const send = ++this.#sends
    this.#rests(false)
    this.#timeouts.add(this, this.#core.settings.callTimeout)
    sendOff(this.#errand).then(
      (answer) => this.#onAnswer(answer),
      (error) => this.#onError(storeError(error), send),
    )
  }

  /** It failed, and is to be tried again if that may help. */
  again(error: LeaseholdError): void {
    if (this.#errand.pointless || this.#sends >= SENDS_MAX || this.#core.closed) {
      this.#giveUp(error)
      return
    }
    this.#lastError = error
    if (this.#sends >= PATIENCE) this.#tellOverdue(error)
    this.#rests(true)
    this.#timeouts.add(this, this.#rest())
  }

  expire(): void {
    if (this.#resting) {
      if (this.#errand.pointless) this.#giveUp(this.#lastError!)
      else this.start()
      return
    }
    const error = new LeaseholdError(
      'unknown-outcome',
      `the store did not answer within ${this.#core.settings.callTimeout}ms: what was asked for may have been done, and is being undone`,
    )
    this.again(error)
  }

  /** The client is closed: the caller is told, but an answer that still comes is dealt with. */
  stop(error: LeaseholdError): void {
    this.#tellOverdue(error)
    if (this.#resting) this.#giveUp(error)
  }

  #onAnswer(answer: Answer): void {
    if (this.#over) return
    this.#over = true
    this.#rests(false)
    this.#timeouts.remove(this)
    this.#errand.answered(answer)
  }

  #onError(error: LeaseholdError, send: number): void {
    if (this.#over) return
    if (isFinal(error, this.#errand)) this.#giveUp(error)
    // Where an earlier send failed while a later one is under way, that will tell more.
    else if (send === this.#sends && !this.#resting) this.again(error)
  }

  #giveUp(error: LeaseholdError): void {
    this.#over = true
    this.#rests(false)
    this.#timeouts.remove(this)
    this.#errand.failed(error)
  }

  #tellOverdue(error: LeaseholdError): void {
    if (this.#toldOverdue) return
    this.#toldOverdue = true
    this.#keep(false)
    this.#errand.overdue(error)
  }

  /** Its timer alone would let the process end before it is sent again. */
  #rests(resting: boolean): void {
    this.#resting = resting
    this.#keep(resting && !this.#toldOverdue)
  }

  #keep(keeping: boolean): void {
    if (keeping === this.#keeping) return
    this.#keeping = keeping
    const { keepAlive } = this.#core
    if (keeping) keepAlive.enter()
    else keepAlive.leave()
  }

  #rest(): number {
    return Math.ceil(restAfter(Math.max(this.#sends - 1, 0), this.#core.random))
  }

  get #timeouts(): Timeouts {
    return this.#core.timeouts
  }
}

function isFinal(error: LeaseholdError, errand: Errand<unknown>): boolean {
  if (error.outcome === 'unknown') return !errand.repeatable
  return !errand.insists?.(error)
}

function sendOff<Answer>(errand: Errand<Answer>): Promise<Answer> {
  try {
    return errand.send()
  } catch (error) {
    return Promise.reject(error)
  }
}

/** Whatever a store threw, as an error of ours. A stranger's error says nothing of the outcome. */
export function storeError(thrown: unknown): LeaseholdError {
  if (isLeaseholdError(thrown)) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new LeaseholdError('unknown-outcome', `the store failed: ${message}`, { cause: thrown })
}
