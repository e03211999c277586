import type { Client, Hold, HoldOptions, View } from '../../client/index.ts'
import {
  type Duration,
  invalid,
  LeaseholdError,
  milliseconds,
  show,
  type Timer,
  type Token,
} from '../../port/index.ts'
import { functionOf } from '../arguments.ts'
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
 * - `lapsed`: the lease could not be renewed in time; nobody else leads yet, and it may recover with
 *   the same number. Only where a grace was asked for.
 * - `over`: somebody else may lead. Final.
 */
export type TermState = 'leading' | 'lapsed' | 'over'

export interface StepDownOptions {
  /** How long to wait for the work under the term to end. The election's `drain` if not given. */
  readonly within?: Duration | undefined
}

/**
 * One time of leading.
 *
 * **Promised.** `leading` is never true, and `signal` is never unaborted when it is read, at a
 * moment when another leads: every look at the term reads the clock, and a term that is given up is
 * over here before the store hears of it. (A revocation by force takes effect at the store at once.)
 *
 * **Not promised.** Between a look and the act that follows it the process may be paused. So send
 * `token` with every write, and have the resource refuse one that is lower than it has seen.
 */
export interface Term extends AsyncDisposable {
  /** The number of the term, whatever became of it: to show, never to write with. */
  readonly number: Token
  /** The number of the term as a fencing token. Reading it throws where this does not lead. */
  readonly token: Token
  readonly state: TermState
  /** Whether the state is `leading`. */
  readonly leading: boolean
  /** Aborted when the term is over, however it ended, with an error of the code `lost`. */
  readonly signal: AbortSignal
  /**
   * Aborted when the work should come to its end while there is time: the term was resigned or
   * handed over, a preferred candidate asks for it, or the signal of `lead` was aborted. What has not
   * ended within the election's `drain` is stopped by `signal`.
   */
  readonly asked: AbortSignal
  /** Throws as reading `token` does. */
  assertLeading(): void
  /**
   * Does some work that stepping down waits for. Work that ended after the term is never reported as
   * done: it fails with the reason for which the term is over. Do not await `resign` or `handOver`
   * within it: they wait for this.
   */
  run<Result>(work: (term: Term) => Promise<Result> | Result): Promise<Result>
  /** Replaces the published value. Rejected as `Hold.update` is. */
  proclaim(value: string | undefined): Promise<void>
  /**
   * Steps down: asks the work to end, waits until it has or until `within` is over, and then gives
   * up the term. Doing so twice does nothing. Rejected only where the store did not answer; the term
   * is over all the same, and the store is told in the background.
   */
  resign(options?: StepDownOptions): Promise<void>
  /**
   * Steps down in favour of one who waits in line: the others step behind it. Answers with what came
   * of it. Where nobody of that name is campaigning nothing is changed, and the term goes on.
   * `within` limits both the wait for the work to end and the wait for the successor to lead.
   */
  handOver(to: string, options?: StepDownOptions): Promise<HandOver>
}

/** What a term knows of the election that it is a term of. */
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
  /** Why its work was asked to end. */
  #cause: { event: ElectionEvent; reason: LeaseholdError } | undefined = undefined
  #resigned: Promise<void> | undefined = undefined
  /** A hand-over under way; never rejected. */
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
    // The view cannot show anything yet, but a term that began as it was lost must not be told.
    if (this.#end === undefined)
      emitEvent(client, keys, 'elected', this.#sentence('leads'), this.number)
  }

  get token(): Token {
    this.assertLeading()
    return this.number
  }

  get state(): TermState {
    // Looks at the clock: a loss that no timer has noticed yet closes the term here and now.
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
      const result = await work(this)
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
    const within = this.#within(options)
    this.#resigned ??= this.#stepDown('resigned', this.#ended('it was resigned'), within)
    await this.#resigned
  }

  async handOver(to: string, options: StepDownOptions = {}): Promise<HandOver> {
    const within = this.#within(options)
    const { client, keys, candidacy, timing } = this.#settings
    if (to === candidacy.candidate) {
      throw invalid(`to is ${show(to)}, who leads already: name another candidate`)
    }
    this.assertLeading()
    const step: Succession = {
      from: this.number,
      to,
      within,
      stepDown: async () => {
        this.assertLeading()
        const reason = this.#ended(`it was handed over to ${show(to)}`, { by: to })
        // A release that is not answered is carried on behind, and the successor waits for it.
        await this.#stepDown('handed-over', reason, within).catch(() => {})
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
   * Leaving a block must not hide the error that ended it. And whoever hands over must not be back
   * in line before those who make room for the successor.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.resign().catch(() => {})
    await this.#handOver
  }

  /** Asks the work to end, and ends the term when it was given `within`. */
  askToEnd(event: ElectionEvent, reason: LeaseholdError, within = this.#settings.drain): void {
    if (this.state === 'over') return
    const { client, keys } = this.#settings
    if (this.#cause === undefined) {
      this.#cause = { event, reason }
      emitEvent(
        client,
        keys,
        'asked',
        this.#sentence(`is asked to step down: ${reason.message}`),
        this.number,
      )
      this.#asking.abort(reason)
    }
    if (within === Infinity) return
    const { clock } = client
    this.#drainTimer ??= clock.timer(clock.now() + within, () => {
      this.#close(reason, event)
      this.#hold.release().catch(() => {})
    })
  }

  /** A reason for which the term is over that is nobody's fault. */
  #ended(how: string, details: { by?: string | undefined } = {}): LeaseholdError {
    return new LeaseholdError(
      'lost',
      `term ${this.number} of ${show(this.#settings.keys.name)} is over: ${how}`,
      {
        reason: 'released',
        ...details,
      },
    )
  }

  async #stepDown(event: ElectionEvent, reason: LeaseholdError, within: number): Promise<void> {
    if (this.#runningWork > 0) await this.#drain(event, reason, within)
    // Where it was asked to end before, that is why it ends now.
    const cause = this.#cause ?? { event, reason }
    this.#close(cause.reason, cause.event)
    await this.#hold.release()
  }

  async #drain(event: ElectionEvent, reason: LeaseholdError, within: number): Promise<void> {
    this.askToEnd(event, reason, Infinity)
    const untilIdle = (done: () => void) => {
      this.#idle = done
    }
    await sleep(this.#settings.client, within, this.#ending.signal, untilIdle).catch(() => {})
  }

  /** Over here first: only then is the store told, and can anybody else lead. */
  #close(reason: LeaseholdError, event: ElectionEvent): void {
    if (this.state === 'over') return
    this.#end = reason
    this.#drainTimer?.cancel()
    this.#view.close()
    this.#asking.abort(reason)
    this.#ending.abort(reason)
    const { client, keys } = this.#settings
    emitEvent(client, keys, event, this.#sentence(`leads no more: ${reason.message}`), this.number)
  }

  /** Whether somebody who is preferred asks for the term. */
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

  #within({ within }: StepDownOptions): number {
    return within === undefined ? this.#settings.drain : milliseconds(within, 'within')
  }

  #sentence(what: string): string {
    return `${show(this.#settings.candidacy.candidate)} ${what}`
  }
}
