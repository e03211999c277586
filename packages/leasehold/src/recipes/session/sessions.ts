import type { CallOptions, Client } from '../../client/index.ts'
import {
  checkNames,
  type Duration,
  formatDuration,
  invalid,
  knownNames,
  type LeaseId,
  milliseconds,
  show,
  type Time,
} from '../../port/index.ts'
import { countOf, keyPart, optionsOf } from '../arguments.ts'
import { jsonOf } from '../values/json.ts'
import type { SessionRecord } from './record.ts'
import { SessionTable, type Stored, type StoredTimes } from './session-table.ts'
import { type SessionListener, type SessionWatch, watchSessions } from './watch.ts'

/**
 * Sessions: data that lives as long as it is used, up to a maximum.
 *
 * A session belongs to no process. Any process on the store can load it by its id, use it and end
 * it, and it outlives them all. It is a lease whose claim carries the data. Hold other things under
 * its lease (`leasehold.lock(key, { parent: session.lease })`), and they end with the session.
 *
 * **Promised.** A session ends between `ttl` and 1.1 `ttl` after it was last touched, and never
 * later than `max` after it began. It costs each process at most one renewal per tenth of its ttl,
 * and processes share renewals. Its end, for any reason, ends everything under its lease at the
 * same moment. If the store is unreachable, the session is *unknown*: that is an error, never "no
 * session".
 *
 * **Not promised.** Data is saved as a whole, and the last write wins: concurrent changes can be
 * lost, unless they are made under a lock. A loaded session is a snapshot: it notices that it was
 * ended elsewhere when it is loaded again or saved, but not in every `touch`.
 *
 * The id is a secret of 128 bits: it gives access to the session. Keys, events and logs contain
 * only its hash (`ref`). Anybody who may read the store can read the data and the names of users.
 */
export class Sessions<Data = unknown> {
  readonly #client: Client
  readonly #table: SessionTable
  readonly #options: SessionsOptions

  constructor(client: Client, name = 'main', options: SessionsOptions & CallOptions = {}) {
    this.#options = optionsOf('sessions', options, SESSIONS_OPTIONS)
    this.#client = client.limitedTo(options.timeout)
    this.#table = new SessionTable(this.#client, keyPart('the name of the sessions', name))
    lifeOf({}, options)
  }

  /** Creates a session. Its data is `null` if none is given. */
  create(wanted: NewSession<Data>): Promise<Session<Data>>
  create(wanted: Omit<NewSession<Data>, 'data'>): Promise<Session<Data | null>>
  async create(
    wanted: Omit<NewSession<Data>, 'data'> & { readonly data?: Data },
  ): Promise<Session<Data | null>> {
    if (typeof wanted !== 'object' || wanted === null) {
      throw invalid(`the new session is ${show(wanted)}: give an object such as { user, data }`)
    }
    checkNames('create', wanted, NEW_SESSION)
    const { user } = wanted
    // `undefined` is refused: a variable without a value is more likely a mistake than no data.
    const data = 'data' in wanted ? wanted.data : null
    const { ttl, max } = lifeOf(wanted, this.#options)
    const json = jsonOf(data, 'the data of the session')
    const id = this.#client.random.id()
    const record: SessionRecord = { user, ttl, max, since: undefined, data: json }
    const stored = await this.#table.create(this.#table.refOf(id), record)
    return new IdentifiedSession<Data | null>(this.#table, stored, id)
  }

  /** Returns the session with this id; `undefined` if there is none. */
  async get(id: string): Promise<Session<Data> | undefined> {
    const stored = await this.#table.find(this.#table.refOf(checkId(id)))
    return stored && new IdentifiedSession<Data>(this.#table, stored, id)
  }

  /** Ends the session with this id. Returns whether there was one. */
  async end(id: string, why = 'ended'): Promise<boolean> {
    return this.#table.end(this.#table.refOf(checkId(id)), why)
  }

  /** The sessions of a user, at most `limit` (1000). Costs one call, plus one per session. */
  async list(user: string, options: { limit?: number } = {}): Promise<ListedSession<Data>[]> {
    const { limit = 1000 } = optionsOf('list', options, LIST_OPTIONS)
    const found = await this.#table.list(user, countOf('limit', limit, 1, LIST_MAX))
    return found.map((stored) => new SeenSession<Data>(this.#table, stored))
  }

  /** The sessions of all users, at most `limit` (1000). Costs one call, plus one per session. */
  async listAll(options: { limit?: number } = {}): Promise<ListedSession<Data>[]> {
    const { limit = 1000 } = optionsOf('listAll', options, LIST_OPTIONS)
    const found = await this.#table.list(undefined, countOf('limit', limit, 1, LIST_MAX))
    return found.map((stored) => new SeenSession<Data>(this.#table, stored))
  }

  /** Ends the current sessions of a user, except the one with the id `except`. Returns how many. */
  async endAll(user: string, options: { except?: string; why?: string } = {}): Promise<number> {
    const given = optionsOf('endAll', options, END_ALL_OPTIONS)
    const { except, why = 'all sessions of the user were ended' } = given
    const ref = except === undefined ? undefined : this.#table.refOf(checkId(except))
    return this.#table.endAll(user, ref, why)
  }

  /** Reports all sessions that begin and end from now on, in any process. */
  watch(listener: SessionListener): SessionWatch {
    return watchSessions(this.#client, this.#table.keys, listener)
  }
}

export interface SessionsOptions {
  /** How long a session lives after it was last touched. Default: 20 minutes. */
  readonly ttl?: Duration | undefined
  /** The longest life. Default: 24 hours, or the ttl if that is longer. */
  readonly max?: Duration | undefined
}

export interface NewSession<Data> extends SessionsOptions {
  /** The user, so that all sessions of a user can be listed and ended. */
  readonly user?: string | undefined
  /** Anything that is JSON-serializable. */
  readonly data: Data
}

const SESSIONS_OPTIONS = knownNames<SessionsOptions & CallOptions>({
  ttl: true,
  max: true,
  timeout: true,
})
const NEW_SESSION = knownNames<NewSession<unknown>>({
  ttl: true,
  max: true,
  user: true,
  data: true,
})
const LIST_OPTIONS = knownNames<{ limit?: number }>({ limit: true })
const END_ALL_OPTIONS = knownNames<{ except?: string; why?: string }>({ except: true, why: true })

/** A session as it was when it was read. */
export interface KnownSession<Data> {
  /** The hash of the session's id: a name that is not secret. */
  readonly ref: string
  readonly user: string | undefined
  readonly data: Data
  /** To end things with the session: `leasehold.lock(key, { parent: session.lease })`. */
  readonly lease: LeaseId
  /**
   * Marks the session as used. Fails with `lease-ended` and the reason if the store says that it
   * has ended; but the store is asked at most once per tenth of the ttl.
   */
  touch(): Promise<void>
  /**
   * Replaces the data, and touches. The last write wins; saves of one session object run in order.
   * Fails with `lease-ended` if the session has ended.
   */
  save(data: Data): Promise<void>
  /** Ends the session and everything under its lease. A second call does nothing. */
  end(why?: string): Promise<void>
}

export interface Session<Data = unknown> extends KnownSession<Data> {
  /** The secret that finds the session. Give it only to its user. */
  readonly id: string
}

export interface ListedSession<Data = unknown> extends KnownSession<Data> {
  /** When it began, and when it expires if it is not touched. Store times, for display. */
  readonly createdAt: Time
  readonly until: Time
}

class OneSession<Data> implements KnownSession<Data> {
  readonly #table: SessionTable
  #stored: Stored
  #saves: Promise<unknown> = Promise.resolve()

  constructor(table: SessionTable, stored: Stored) {
    this.#table = table
    this.#stored = stored
  }

  get ref(): string {
    return this.#stored.ref
  }

  get user(): string | undefined {
    return this.#stored.record.user
  }

  get data(): Data {
    return JSON.parse(this.#stored.record.data) as Data
  }

  get lease(): LeaseId {
    return this.#stored.lease
  }

  async touch(): Promise<void> {
    await this.#table.touch(this.#stored)
  }

  async save(data: Data): Promise<void> {
    const json = jsonOf(data, 'the data of the session')
    const saved = this.#saves.then(async () => {
      this.#stored = await this.#table.save(this.#stored, json)
      await this.#table.touch(this.#stored)
    })
    this.#saves = saved.catch(() => {})
    await saved
  }

  async end(why = 'ended'): Promise<void> {
    await this.#table.end(this.ref, why)
  }
}

class IdentifiedSession<Data> extends OneSession<Data> implements Session<Data> {
  readonly id: string

  constructor(table: SessionTable, stored: Stored, id: string) {
    super(table, stored)
    this.id = id
  }
}

class SeenSession<Data> extends OneSession<Data> implements ListedSession<Data> {
  readonly createdAt: Time
  readonly until: Time

  constructor(table: SessionTable, stored: StoredTimes) {
    super(table, stored)
    this.createdAt = stored.createdAt
    this.until = stored.until
  }
}

const TTL_MS = 20 * 60_000
const MAX_MS = 24 * 60 * 60_000
const LIST_MAX = 1_000_000

/** Computes ttl and maximum: the session's own options go first. Throws if max is below ttl. */
function lifeOf(wanted: SessionsOptions, general: SessionsOptions) {
  const ttlGiven = wanted.ttl ?? general.ttl
  const maxGiven = wanted.max ?? general.max
  const ttl = ttlGiven === undefined ? TTL_MS : milliseconds(ttlGiven, 'ttl')
  if (maxGiven === undefined) return { ttl, max: Math.max(MAX_MS, ttl) }
  const max = milliseconds(maxGiven, 'max')
  // The default ttl adapts to a given max.
  if (ttlGiven === undefined) return { ttl: Math.min(ttl, max), max }
  if (max >= ttl) return { ttl, max }
  throw invalid(
    `max ${formatDuration(max)} is shorter than ttl ${formatDuration(ttl)}. Make max at least as long as ttl`,
  )
}

function checkId(id: string): string {
  if (typeof id === 'string') return id
  throw invalid(`the session's id is ${show(id)}: it must be a string`)
}
