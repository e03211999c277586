import type { Client, Hold, HoldOptions, TimingOptions } from '../../client/index.ts'
import {
  backoff,
  type Duration,
  type ErrorCode,
  formatDuration,
  invalid,
  isLeaseholdError,
  type Key,
  LeaseholdError,
  milliseconds,
  show,
} from '../../port/index.ts'
import { checkWaitOptions, functionOf, objectOf, stringOf } from '../arguments.ts'
import { sleep, unlessAborted } from '../sleep.ts'
import {
  type Candidacy,
  candidacyJson,
  candidateOf,
  checkValue,
  type ElectionKeys,
  electionKeys,
  type Leader,
  leaderOf,
  preferredBehind,
  successorOf,
} from './candidate-queue.ts'
import { emitEvent } from './events.ts'
import { notLeading, readQueue } from './hand-over.ts'
import { Observation, type ObserveOptions } from './observation.ts'
import { HeldTerm, type StepDownOptions, type Term, type TermSettings } from './term.ts'

/**
 * An election: of all who campaign for a name, one leads at a time. Each time of leading is a term,
 * and its number is a fencing token: it only ever goes up.
 *
 * Candidates stand in the line of one key, `election/<name>/line`, which no lock of a user's own can
 * meet by accident. Whoever comes to the front looks behind: where it sees a candidate that is
 * preferred it releases and claims again, behind that one, with a new token; otherwise it takes the
 * term and says so on its claim, and only then is anybody told that it leads.
 *
 * **Promised.** Never two terms that believe in themselves at once. A candidate comes back by
 * itself after a loss and after an outage of the store, however long; each time is told as an event.
 * A leader that vanishes is followed by the next in line when its `ttl + grace` is over.
 *
 * **Not promised.** A paused leader may act after its term: send `term.token` with every write.
 * Priorities are wishes: a candidate whose line to the store is slow may find another leading.
 */
export interface ElectionOptions extends Omit<TimingOptions, 'strategy' | 'maxHold'> {
  /** Who this is to others, and what `handOver` calls it. The client's `holder` if not given. */
  readonly candidate?: string | undefined
  /** A text that followers read while this leads, such as its address. */
  readonly value?: string | undefined
  /** The higher is preferred. 0 if not given. */
  readonly priority?: number | undefined
  /**
   * A sitting leader of a lower priority is asked to step down. If not given, this one goes first at
   * the next change.
   */
  readonly preempt?: boolean | undefined
  /** How long work may take to end when its term is to end. 10 s if not given. */
  readonly drain?: Duration | undefined
}

export interface CampaignOptions {
  /** How long to wait in all; then it fails with `timeout`. For as long as it takes if not given. */
  readonly wait?: Duration | undefined
  /** Ends the wait with `aborted`. It has no effect on the term. */
  readonly signal?: AbortSignal | undefined
}

export interface LeadOptions {
  /** Ends the loop: a wait at once, a term when its work has come to its end. */
  readonly signal?: AbortSignal | undefined
}

const DRAIN_MS = 10_000
const NAME_MAX = 256
/** A body that ends at once must not make terms as fast as the store can count. */
const BETWEEN_TERMS_MS = 100
/** Failures that trying again does not mend. */
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
    const { ttl, grace, renewEvery, drain } = options
    if (ttl === 'infinite' || ttl === Infinity) {
      throw invalid(`ttl is infinite: nobody could follow a leader that died; 10s is usual`)
    }
    this.name = stringOf("the election's name", name, NAME_MAX)
    this.candidate = candidacy.candidate
    this.#client = client
    this.#keys = electionKeys(name)
    this.#settings = {
      client,
      keys: this.#keys,
      candidacy,
      timing: { strategy: 'election', ttl, grace, renewEvery },
      drain: drain === undefined ? DRAIN_MS : milliseconds(drain, 'drain'),
    }
  }

  /** The key whose line the candidates stand in. */
  get key(): Key {
    return this.#keys.queue
  }

  /** The term in which this candidate leads now, if it does. */
  get term(): Term | undefined {
    return this.#term?.state === 'over' ? undefined : this.#term
  }

  /**
   * Stands for election and waits until it leads, through outages of the store too. Fails with
   * `timeout`, `aborted` or `closed`, or where trying again would not help. One candidacy at a time:
   * call `leasehold.election` again for another candidate.
   */
  async campaign(options: CampaignOptions = {}): Promise<Term> {
    return this.#campaign(options)
  }

  /**
   * Leads whenever it can: a loop over its terms. When the body ends its term is resigned, and it
   * campaigns again, behind the others; when a term is lost `term.signal` stops the body, and it
   * campaigns again as well. Leaving the loop resigns and ends it.
   *
   * When `signal` is aborted, or the client is closed, the loop ends without an error: a wait at
   * once, a body when `term.asked` has made it come to its end, or the election's `drain` is over.
   */
  async *lead(options: LeadOptions = {}): AsyncGenerator<Term, void, void> {
    checkWaitOptions(options)
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
   * The same with a function that is called for each term. Work that fails with `lost` because its
   * term is over does not end it: in a loop of one's own such an error must be caught, or it leaves
   * the loop. Any other error does, when the term was resigned.
   */
  async withTerms(
    work: (term: Term) => Promise<void> | void,
    options?: LeadOptions,
  ): Promise<void> {
    functionOf('the work', work)
    for await (const term of this.lead(options)) {
      try {
        await work(term)
      } catch (error) {
        if (term.state !== 'over' || !isLeaseholdError(error, 'lost')) throw error
      }
    }
  }

  /** Resigns the term in which this candidate leads, if it does: see `Term.resign`. */
  async resign(options?: StepDownOptions): Promise<void> {
    await this.#term?.resign(options)
  }

  /** Changes what the sitting leader publishes. Refused with `claim-not-found` where it is another. */
  async proclaim(value: string | undefined): Promise<void> {
    checkValue(value)
    const { term } = this
    if (term === undefined) throw notLeading(this.#keys)
    await term.proclaim(value)
  }

  /** Who leads, asked of the store now. */
  async leader(): Promise<Leader | undefined> {
    const { claims } = await this.#client.store.read({ key: this.#keys.queue, limit: 1 })
    return leaderOf(claims, 0)
  }

  /** Follows who leads; to do so one need not be a candidate. Close it, or leave the loop over it. */
  observe(options: ObserveOptions = {}): Observation {
    return new Observation(this.#client, this.#keys, options)
  }

  async #campaign(options: CampaignOptions): Promise<HeldTerm> {
    checkWaitOptions(options)
    const { wait, signal } = options
    const until = wait === undefined ? Infinity : this.#client.now() + milliseconds(wait, 'wait')
    if (this.#campaigning || this.term !== undefined) {
      throw invalid(
        `${show(this.candidate)} ${this.#campaigning ? 'is campaigning for' : 'leads'} ${show(this.name)} already: call leasehold.election() again for another candidate`,
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
    emitEvent(this.#client, this.#keys, 'campaigning', `${show(candidate)} stands for election`)
    for (let failures = 0; ; ) {
      let hold: Hold | undefined
      try {
        hold = await this.#joinQueue(until, signal)
        if (await this.#mayLead(hold, signal)) return new HeldTerm(this.#settings, hold)
        failures = 0
      } catch (error) {
        await hold?.[Symbol.asyncDispose]()
        if (signal?.aborted === true) throw aborted(this.#keys, signal)
        if (isLeaseholdError(error) && FINAL.has(error.code)) throw error
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
   * At the front: takes the term and says so, or steps behind one who is preferred. What cannot be
   * found out from the store, because it fails or because the claim is lost meanwhile, is thrown.
   */
  async #mayLead(hold: Hold, signal: AbortSignal | undefined): Promise<boolean> {
    const ending = [hold.signal, this.#client.closing, signal]
    const { candidacy } = this.#settings
    const preferred = await unlessAborted(ending, this.#preferred(hold))
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

  async #preferred(hold: Hold) {
    const [queue, named] = await Promise.all([
      readQueue(this.#client, this.#keys),
      this.#client.store.read({ key: this.#keys.successor, limit: 1 }),
    ])
    return preferredBehind(queue.map(candidateOf), hold.claimToken, successorOf(named.claims))
  }

  async #backOff(
    ms: number,
    until: number,
    signal: AbortSignal | undefined,
    error: unknown,
  ): Promise<void> {
    const why = error instanceof Error ? error.message : String(error)
    if (this.#client.now() + ms >= until) {
      throw new LeaseholdError('timeout', `${show(this.name)} could not be led in time: ${why}`, {
        cause: error,
      })
    }
    emitEvent(
      this.#client,
      this.#keys,
      'retrying',
      `again in ${formatDuration(ms)}, because ${why}`,
    )
    // Where the client is closed or the signal aborted, the next try says so.
    await sleep(this.#client, ms, signal).catch(() => {})
  }
}

function candidacyOf(client: Client, options: ElectionOptions): Candidacy {
  objectOf('options', options)
  const { candidate = client.holder, priority = 0, preempt = false, value } = options
  stringOf('candidate', candidate, NAME_MAX)
  if (!Number.isFinite(priority)) {
    throw invalid(
      `priority is ${show(priority)}: it must be a number, the higher the more preferred`,
    )
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
    `campaigning for ${show(keys.name)} was aborted by its signal`,
    {
      cause: signal.reason,
    },
  )
}

function stopped(keys: ElectionKeys, term: Term): LeaseholdError {
  return new LeaseholdError(
    'lost',
    `term ${term.number} of ${show(keys.name)} is over: the signal of its loop was aborted`,
    { reason: 'released' },
  )
}
