import type { Client, Hold, HoldOptions, View } from '../../client/index.ts'
import {
  type Duration,
  invalid,
  knownNames,
  LeaseholdError,
  milliseconds,
  show,
  type Timer,
  type Token,
} from '../../port/index.ts'
import { functionOf, optionsOf } from '../arguments.ts'
import { onAbort, sleep } from '../sleep.ts'
import {
  type Candidacy,
  candidacyJson,
  candidateOf,
  checkValue,
  type ElectionKeys,
  preemptor,
} from './candidate-queue.ts'
import { type ElectionEvent, emitEvent } from './events.ts'
import { type HandOver, type Succession, succession } from './hand-over.ts'

/**
 * - `leading`: nobody else leads.
 * - `lapsed`: the lease was not renewed in time. Nobody else leads yet, and the term may recover
 *   with the same number. Only possible with a grace period.
 * - `over`: somebody else may lead. Final.
 */
export type TermState = 'leading' | 'lapsed' | 'over'

export interface StepDownOptions {
  /** How long to wait for the work of the term to end. Default: the election's `drain`. */
  readonly timeout?: Duration | undefined
  /** @deprecated The old name of `timeout`. */
  readonly within?: Duration | undefined
}

const STEP_DOWN_OPTIONS = knownNames<StepDownOptions>({ timeout: true, within: true })

/**
 * One period of leadership.
 *
 * **Promised.** While another leads, `leading` is never true and `signal` is always aborted: every
 * access checks the clock. A term that is given up ends here before the store is called. (A forced
 * revocation takes effect at the store first.)
 *
 * **Not promised.** The process may be paused between a check and the action that follows. So send
 * `token` with every write, and let the resource refuse a token lower than one it has seen.
 */
export interface Term extends AsyncDisposable {
  /** The number of the term, also after it is over: for display, never for writes. */
  readonly number: Token
  /** The number of the term as a fencing token. Throws if this candidate does not lead. */
  readonly token: Token
  readonly state: TermState
  /** Whether the state is `leading`. */
  readonly leading: boolean
  /** Aborted when the term is over, for any reason, with an error of code `lost`. */
  readonly signal: AbortSignal
  /**
   * Aborted when the work should end soon: the term was resigned or handed over, a preferred
   * candidate asks for it, or the signal of `lead` was aborted. Work that has not ended within the
   * election's `drain` is stopped by `signal`.
   */
  readonly asked: AbortSignal
  /** Throws in the same cases as `token`. */
  assertLeading(): void
  /**
   * Runs work that stepping down waits for. Work that ends after the term fails with the reason for
   * the end of the term. Do not await `resign` or `handOver` inside it: they wait for this work.
   */
  run<Result>(work: (term: Term) => Promise<Result> | Result): Promise<Result>
  /** Replaces the published value. Rejects like `Hold.update`. */
  proclaim(value: string | undefined): Promise<void>
  /**
   * Steps down: asks the work to end, waits until it has or the `timeout` is over, and gives up the
   * term. A second call does nothing. Rejects only if the store did not answer; the term is over
   * anyway, and the release is retried in the background.
   */
  resign(options?: StepDownOptions): Promise<void>
  /**
   * Steps down in favour of a candidate in the queue; the others let it pass. If no candidate has
   * that name, nothing changes and the term continues. `timeout` limits both the wait for the work and
   * the wait for the successor.
   */
  handOver(to: string, options?: StepDownOptions): Promise<HandOver>
}

export interface TermSettings {
  readonly client: Client
  readonly keys: ElectionKeys
  readonly candidacy: Candidacy
  readonly timing: HoldOptions
  /** In milliseconds. */
  readonly drain: number
}

export class HeldTerm implements Term {
  readonly number: Token
  readonly #settings: TermSettings
  readonly #hold: Hold
  readonly #view: View
  readonly #ending = new AbortController()
  readonly #asking = new AbortController()
  #end: LeaseholdError | undefined = undefined
  #runningWork = 0
  #idle: (() => void) | undefined = undefined
  #drainTimer: Timer | undefined = undefined
  #cause: { event: ElectionEvent; reason: LeaseholdError } | undefined = undefined
  #resigned: Promise<void> | undefined = undefined
  /** A running hand-over. Never rejects. */
  #handOver: Promise<void> | undefined = undefined

  constructor(settings: TermSettings, hold: Hold) {
    const { client, keys } = settings
    this.#settings = settings
    this.#hold = hold
    this.number = hold.claimToken
    this.#view = client.view(keys.prefix, () => this.#checkPreemption())
    onAbort([hold.signal], (reason) => {
      const loss = reason as LeaseholdError
      this.#close(loss, loss.reason === 'closed' ? 'resigned' : 'lost')
    })
    // A term that was lost as it began must not be reported.
    if (this.#end === undefined) this.#emit('elected', 'leads')
  }

  get token(): Token {
    this.assertLeading()
    return this.number
  }

  get state(): TermState {
    // This checks the clock: a loss that no timer has noticed yet ends the term now.
    const { state } = this.#hold
    if (this.#end !== undefined) return 'over'
    return state === 'lapsed' ? 'lapsed' : 'leading'
  }

  get leading(): boolean {
    return this.state === 'leading'
  }

  get signal(): AbortSignal {
    void this.state
    return this.#ending.signal
  }

  get asked(): AbortSignal {
    void this.state
    return this.#asking.signal
  }

  assertLeading(): void {
    if (this.state === 'over') throw this.#end
    this.#hold.assertHeld()
  }

  async run<Result>(work: (term: Term) => Promise<Result> | Result): Promise<Result> {
    functionOf('the work', work)
    this.assertLeading()
    this.#runningWork++
    try {
      const result = await this.#settings.client.awaited(work(this))
      if (this.state === 'over') throw this.#end
      return result
    } finally {
      if (--this.#runningWork === 0) this.#idle?.()
    }
  }

  async proclaim(value: string | undefined): Promise<void> {
    checkValue(value)
    this.assertLeading()
    await this.#hold.update(candidacyJson({ ...this.#settings.candidacy, value }, true))
  }

  async resign(options: StepDownOptions = {}): Promise<void> {
    const timeout = this.#timeoutOf(options)
    this.#resigned ??= this.#stepDown('resigned', this.#ended('it was resigned'), timeout)
    await this.#resigned
  }

  async handOver(to: string, options: StepDownOptions = {}): Promise<HandOver> {
    const timeout = this.#timeoutOf(options)
    const { client, keys, candidacy, timing } = this.#settings
    if (to === candidacy.candidate) {
      throw invalid(`to is ${show(to)}, which leads already. Name another candidate`)
    }
    this.assertLeading()
    const step: Succession = {
      from: this.number,
      to,
      timeout,
      stepDown: async () => {
        this.assertLeading()
        const reason = this.#ended(`it was handed over to ${show(to)}`, { by: to })
        // An unanswered release is retried in the background, and the successor waits for it.
        await this.#stepDown('handed-over', reason, timeout).catch(() => {})
      },
    }
    const handing = succession(client, keys, timing, step)
    this.#handOver = handing.then(
      () => {},
      () => {},
    )
    return handing
  }

  /**
   * Leaving a block must not hide the error that ended it. After a hand-over, this candidate must
   * not be back in the queue before the others have let the successor pass.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.resign().catch(() => {})
    await this.#handOver
  }

  /** Asks the work to end, and ends the term after the timeout. */
  askToEnd(event: ElectionEvent, reason: LeaseholdError, timeout = this.#settings.drain): void {
    if (this.state === 'over') return
    if (this.#cause === undefined) {
      this.#cause = { event, reason }
      this.#emit('asked', `is asked to step down: ${reason.message}`)
      this.#asking.abort(reason)
    }
    if (timeout === Infinity) return
    const { clock } = this.#settings.client
    this.#drainTimer ??= clock.timer(clock.now() + timeout, () => {
      this.#close(reason, event)
      this.#hold.release().catch(() => {})
    })
  }

  /** The reason for a regular end of the term. */
  #ended(how: string, details: { by?: string | undefined } = {}): LeaseholdError {
    return new LeaseholdError(
      'lost',
      `term ${this.number} of ${show(this.#settings.keys.name)} is over: ${how}`,
      { reason: 'released', ...details },
    )
  }

  async #stepDown(event: ElectionEvent, reason: LeaseholdError, timeout: number): Promise<void> {
    if (this.#runningWork > 0) await this.#drain(event, reason, timeout)
    // If it was asked to end earlier, that is the reason.
    const cause = this.#cause ?? { event, reason }
    this.#close(cause.reason, cause.event)
    await this.#hold.release()
  }

  async #drain(event: ElectionEvent, reason: LeaseholdError, timeout: number): Promise<void> {
    this.askToEnd(event, reason, Infinity)
    const untilIdle = (done: () => void) => {
      this.#idle = done
    }
    await sleep(this.#settings.client, timeout, this.#ending.signal, untilIdle).catch(() => {})
  }

  /** It ends here first. Only then the store is called, and somebody else can lead. */
  #close(reason: LeaseholdError, event: ElectionEvent): void {
    if (this.state === 'over') return
    this.#end = reason
    this.#drainTimer?.cancel()
    this.#view.close()
    this.#asking.abort(reason)
    this.#ending.abort(reason)
    this.#emit(event, `no longer leads: ${reason.message}`)
  }

  /** Steps down if a preferred candidate asks for the term. */
  #checkPreemption(): void {
    const { keys, candidacy } = this.#settings
    const queue = this.#view.places(keys.queue).map(candidateOf)
    const other = preemptor(queue, this.number)
    if (other === undefined || this.#cause !== undefined) return
    const reason = new LeaseholdError(
      'lost',
      `term ${this.number} of ${show(keys.name)} is over: ${show(other.candidate)} has priority ${other.priority}, above ${candidacy.priority}`,
      { reason: 'superseded', by: other.candidate },
    )
    this.askToEnd('preempted', reason)
  }

  #timeoutOf(options: StepDownOptions): number {
    const { timeout, within } = optionsOf('resign and handOver', options, STEP_DOWN_OPTIONS)
    const given = timeout ?? within
    return given === undefined ? this.#settings.drain : milliseconds(given, 'timeout')
  }

  #emit(event: ElectionEvent, what: string): void {
    const { client, keys, candidacy } = this.#settings
    emitEvent(client, keys, event, `${show(candidacy.candidate)} ${what}`, this.number)
  }
}
