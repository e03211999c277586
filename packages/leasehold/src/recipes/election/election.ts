import {
  type CallOptions,
  type Client,
  type Hold,
  type HoldOptions,
  type TimingOptions,
  timeoutIn,
} from '../../client/index.ts'
import {
  backoff,
  type Duration,
  type ErrorCode,
  formatDuration,
  invalid,
  isLeaseholdError,
  type Key,
  knownNames,
  LeaseholdError,
  milliseconds,
  show,
  type Token,
} from '../../port/index.ts'
import { checkWaitOptions, functionOf, optionsOf, stringOf } from '../arguments.ts'
import { sleep, unlessAborted } from '../sleep.ts'
import {
  type Candidacy,
  type Candidate,
  candidacyJson,
  candidateOf,
  checkValue,
  type ElectionKeys,
  electionKeys,
  type Leader,
  leaderOf,
  preemptor,
  preferredBehind,
  successorOf,
} from './candidate-queue.ts'
import { emitEvent } from './events.ts'
import { notLeading, readQueue } from './hand-over.ts'
import { Observation, type ObserveOptions } from './observation.ts'
import { HeldTerm, type StepDownOptions, type Term, type TermSettings } from './term.ts'

/**
 * An election: of all candidates for a name, one leads at a time. Each period of leadership is a
 * term. Its number is a fencing token, which only ever increases.
 *
 * Candidates wait in the queue of one key, `election/<name>/line`, which no user's lock can use by
 * accident. (`line` is an old word in a stored key.) The candidate at the front looks for a
 * preferred candidate behind it. If there is one, it releases its claim and joins the queue again.
 * Otherwise it takes the term, writes that to its claim, and only then reports that it leads.
 *
 * **Promised.** Two terms are never valid at the same time. After a loss or an outage, however
 * long, a candidate comes back by itself and reports each step as an event. If a leader vanishes,
 * the next candidate follows when its `ttl + grace` is over.
 *
 * **Not promised.** A paused leader may act after its term: send `term.token` with every write.
 * Priorities are not strict: a candidate with a slow connection may find that another leads.
 */
export interface ElectionOptions extends Omit<TimingOptions, 'strategy' | 'maxHold'> {
  /** The name that others see and that `handOver` uses. Default: the client's `holder`. */
  readonly candidate?: string | undefined
  /** A string that followers read while this candidate leads, such as its address. */
  readonly value?: string | undefined
  /** Candidates with a higher priority are preferred. Default: 0. */
  readonly priority?: number | undefined
  /** Ask a leader of lower priority to step down, instead of waiting for the next change. */
  readonly preempt?: boolean | undefined
  /** The term ends as soon as the connection to the server ends. See `HoldOptions`. */
  readonly tied?: boolean | undefined
  /** How long work may take to end when its term should end. Default: 10 s. */
  readonly drain?: Duration | undefined
}

export interface CampaignOptions {
  /** The longest wait; then it fails with `timeout`. Default: no limit. */
  readonly wait?: Duration | undefined
  /** Ends the wait with `aborted`. It has no effect on the term. */
  readonly signal?: AbortSignal | undefined
}

export interface LeadOptions {
  /** Ends the loop: at once while waiting, or when the work of the current term has ended. */
  readonly signal?: AbortSignal | undefined
}

const ELECTION_OPTIONS = knownNames<ElectionOptions>({
  ttl: true,
  grace: true,
  renewEvery: true,
  candidate: true,
  value: true,
  priority: true,
  preempt: true,
  drain: true,
  tied: true,
})
const CAMPAIGN_OPTIONS = knownNames<CampaignOptions>({ wait: true, signal: true })
const LEAD_OPTIONS = knownNames<LeadOptions>({ signal: true })

const DRAIN_MS = 10_000
const NAME_MAX = 256
/** A loop body that ends at once must not start terms as fast as the store allows. */
const BETWEEN_TERMS_MS = 100
/** Errors that a retry cannot fix. */
const FINAL: ReadonlySet<ErrorCode> = new Set([
  'invalid-argument',
  'unsupported',
  'closed',
  'timeout',
])

export class Election {
  readonly name: string
  readonly candidate: string
  readonly #client: Client
  readonly #keys: ElectionKeys
  readonly #settings: TermSettings
  #campaigning = false
  #term: HeldTerm | undefined = undefined

  constructor(client: Client, name: string, options: ElectionOptions = {}) {
    const candidacy = candidacyOf(client, options)
    const { ttl, grace, renewEvery, drain, tied } = options
    if (ttl === 'infinite' || ttl === Infinity) {
      throw invalid(
        `ttl is infinite: nobody could ever follow a leader that died. Give a finite ttl, such as 10s`,
      )
    }
    this.name = stringOf("the election's name", name, NAME_MAX)
    this.candidate = candidacy.candidate
    this.#client = client
    this.#keys = electionKeys(name)
    this.#settings = {
      client,
      keys: this.#keys,
      candidacy,
      timing: { strategy: 'election', ttl, grace, renewEvery, tied },
      drain: drain === undefined ? DRAIN_MS : milliseconds(drain, 'drain'),
    }
  }

  /** The key whose queue the candidates wait in. */
  get key(): Key {
    return this.#keys.queue
  }

  /** The current term of this candidate, if it leads. */
  get term(): Term | undefined {
    return this.#term?.state === 'over' ? undefined : this.#term
  }

  /**
   * Joins the election and waits until it leads, also through outages of the store. Fails with
   * `timeout`, `aborted` or `closed`, or if a retry would not help. One candidacy at a time: call
   * `leasehold.election` again for another candidate.
   */
  async campaign(options: CampaignOptions = {}): Promise<Term> {
    return this.#campaign(options)
  }

  /**
   * A loop over the terms of this candidate. When the body ends, the term is resigned, and the
   * candidate joins the queue again. When a term is lost, `term.signal` stops the body, and the
   * candidate joins the queue again as well. Leaving the loop resigns.
   *
   * If `signal` is aborted or the client is closed, the loop ends without an error: at once while
   * waiting, otherwise when the body has ended or the election's `drain` is over.
   */
  async *lead(options: LeadOptions = {}): AsyncGenerator<Term, void, void> {
    checkWaitOptions('lead', options, LEAD_OPTIONS)
    const { signal } = options
    const ended = () => signal?.aborted === true || this.#client.closing.aborted
    for (;;) {
      const begun = this.#client.clock.now()
      let term: HeldTerm
      try {
        term = await this.#campaign({ signal })
      } catch (error) {
        if (ended() && !isLeaseholdError(error, 'invalid-argument')) return
        throw error
      }
      const stop = () => term.askToEnd('resigned', stopped(this.#keys, term))
      signal?.addEventListener('abort', stop)
      try {
        if (signal?.aborted === true) return
        yield term
      } finally {
        signal?.removeEventListener('abort', stop)
        await term[Symbol.asyncDispose]()
      }
      const rest = begun + BETWEEN_TERMS_MS - this.#client.clock.now()
      try {
        await sleep(this.#client, rest, signal)
      } catch {
        return
      }
    }
  }

  /**
   * Like `lead`, but calls a function for each term. Work that fails with `lost` because its term
   * is over does not end the loop. Any other error does, after the term was resigned.
   */
  async withTerms(
    work: (term: Term) => Promise<void> | void,
    options?: LeadOptions,
  ): Promise<void> {
    functionOf('the work', work)
    for await (const term of this.lead(options)) {
      try {
        await this.#client.awaited(work(term))
      } catch (error) {
        if (term.state !== 'over' || !isLeaseholdError(error, 'lost')) throw error
      }
    }
  }

  /** Resigns the current term, if this candidate leads: see `Term.resign`. */
  async resign(options?: StepDownOptions): Promise<void> {
    await this.#term?.resign(options)
  }

  /** Changes the published value. Fails with `claim-not-found` if this candidate does not lead. */
  async proclaim(value: string | undefined): Promise<void> {
    checkValue(value)
    const { term } = this
    if (term === undefined) throw notLeading(this.#keys)
    await term.proclaim(value)
  }

  /** Reads from the store who leads. */
  async leader(options?: CallOptions): Promise<Leader | undefined> {
    const { store } = this.#client.limitedTo(timeoutIn('leader', options))
    const { claims } = await store.read({ key: this.#keys.queue, limit: 1 })
    return leaderOf(claims, 0)
  }

  /** Reads the candidates from the store, in the order of the queue. One that leads is the first. */
  async candidates(options?: CallOptions): Promise<readonly Candidate[]> {
    const { store } = this.#client.limitedTo(timeoutIn('candidates', options))
    const { claims } = await store.read({ key: this.#keys.queue })
    return claims.map(candidateOf)
  }

  /**
   * What a candidate writes to the store, for a term whose lease somebody else renews: a server
   * campaigns for a caller in another language. Claim the key exclusively with the value of a
   * candidate. At the front of the queue, lead only if `preferredTo` finds nobody: then replace the
   * value by that of a leader.
   */
  entry(leads: boolean): { readonly key: Key; readonly value: string } {
    return { key: this.key, value: candidacyJson(this.#settings.candidacy, leads) }
  }

  /** The candidate that the one with this token, at the front of the queue, must let pass. */
  async preferredTo(token: Token): Promise<Candidate | undefined> {
    const [queue, named] = await Promise.all([
      readQueue(this.#client, this.#keys),
      this.#client.store.read({ key: this.#keys.successor, limit: 1 }),
    ])
    return preferredBehind(queue.map(candidateOf), token, successorOf(named.claims))
  }

  /** The candidate that asks the leader with this token to step down. */
  async preemptorOf(token: Token): Promise<Candidate | undefined> {
    return preemptor(await this.candidates(), token)
  }

  /** Follows who leads, without being a candidate. Close it, or leave the loop over it. */
  observe(options: ObserveOptions = {}): Observation {
    return new Observation(this.#client, this.#keys, options)
  }

  async #campaign(options: CampaignOptions): Promise<HeldTerm> {
    checkWaitOptions('campaign', options, CAMPAIGN_OPTIONS)
    const { wait, signal } = options
    const until = wait === undefined ? Infinity : this.#client.now() + milliseconds(wait, 'wait')
    if (this.#campaigning || this.term !== undefined) {
      throw invalid(
        `${show(this.candidate)} ${this.#campaigning ? 'is campaigning for' : 'leads'} ${show(this.name)} already. Call leasehold.election() again for another candidate`,
      )
    }
    this.#campaigning = true
    try {
      this.#term = await this.#win(until, signal)
      return this.#term
    } finally {
      this.#campaigning = false
    }
  }

  async #win(until: number, signal: AbortSignal | undefined): Promise<HeldTerm> {
    const { candidate } = this.#settings.candidacy
    emitEvent(this.#client, this.#keys, 'campaigning', `${show(candidate)} joins the election`)
    for (let failures = 0; ; ) {
      let hold: Hold | undefined
      try {
        hold = await this.#joinQueue(until, signal)
        if (await this.#mayLead(hold, signal)) return new HeldTerm(this.#settings, hold)
        failures = 0
      } catch (error) {
        await hold?.[Symbol.asyncDispose]()
        if (signal?.aborted === true) throw aborted(this.#keys, signal)
        // With a hold, a timeout is that of a read, and the next try may succeed.
        const isFinal = isLeaseholdError(error) && FINAL.has(error.code)
        if (isFinal && !(hold !== undefined && error.code === 'timeout')) throw error
        await this.#backOff(backoff(failures++, this.#client.random), until, signal, error)
      }
    }
  }

  #joinQueue(until: number, signal: AbortSignal | undefined): Promise<Hold> {
    const { candidacy, timing } = this.#settings
    const left = Math.max(0, until - this.#client.now())
    const options: HoldOptions = { ...timing, signal, wait: left }
    const claim = { key: this.#keys.queue, value: candidacyJson(candidacy, false) }
    return this.#client.hold([claim], options)
  }

  /**
   * Called at the front of the queue: takes the term, or steps behind a preferred candidate. Throws
   * if the store fails or the claim is lost meanwhile.
   */
  async #mayLead(hold: Hold, signal: AbortSignal | undefined): Promise<boolean> {
    const ending = [hold.signal, this.#client.closing, signal]
    const { candidacy } = this.#settings
    const preferred = await unlessAborted(ending, this.preferredTo(hold.claimToken))
    if (preferred === undefined) {
      await unlessAborted(ending, hold.update(candidacyJson(candidacy, true)))
      hold.assertHeld()
      return true
    }
    const detail = `${show(candidacy.candidate)} steps behind ${show(preferred.candidate)}`
    emitEvent(this.#client, this.#keys, 'stepped-behind', detail, hold.claimToken)
    await unlessAborted(ending, hold.release())
    return false
  }

  async #backOff(
    ms: number,
    until: number,
    signal: AbortSignal | undefined,
    error: unknown,
  ): Promise<void> {
    const why = error instanceof Error ? error.message : String(error)
    if (this.#client.now() + ms >= until) {
      throw new LeaseholdError('timeout', `${show(this.name)} could not be won in time: ${why}`, {
        cause: error,
      })
    }
    emitEvent(
      this.#client,
      this.#keys,
      'retrying',
      `again in ${formatDuration(ms)}, because ${why}`,
    )
    // If the client is closed or the signal aborted, the next try reports it.
    await sleep(this.#client, ms, signal).catch(() => {})
  }
}

function candidacyOf(client: Client, options: ElectionOptions): Candidacy {
  optionsOf('an election', options, ELECTION_OPTIONS)
  const { candidate = client.holder, priority = 0, preempt = false, value } = options
  stringOf('candidate', candidate, NAME_MAX)
  if (!Number.isFinite(priority)) {
    throw invalid(`priority is ${show(priority)}: it must be a finite number; higher is preferred`)
  }
  if (typeof preempt !== 'boolean') {
    throw invalid(`preempt is ${show(preempt)}: it must be true or false`)
  }
  checkValue(value)
  return { candidate, priority, preempt, value }
}

function aborted(keys: ElectionKeys, signal: AbortSignal): LeaseholdError {
  return new LeaseholdError(
    'aborted',
    `the campaign for ${show(keys.name)} was aborted by its signal`,
    { cause: signal.reason },
  )
}

function stopped(keys: ElectionKeys, term: Term): LeaseholdError {
  return new LeaseholdError(
    'lost',
    `term ${term.number} of ${show(keys.name)} is over: the signal of its loop was aborted`,
    { reason: 'released' },
  )
}
