import type { Client } from '../../client/index.ts'
import {
  type Duration,
  formatDuration,
  invalid,
  type LeaseId,
  milliseconds,
  show,
  type Time,
} from '../../port/index.ts'
import { countOf, keyPart, objectOf } from '../arguments.ts'
import { jsonOf } from '../json.ts'
import type { SessionRecord } from './record.ts'
import { SessionTable, type Stored, type StoredTimes } from './session-table.ts'
import { type SessionListener, type SessionWatch, watchSessions } from './watch.ts'

/**
 * Sessions: data that lives for as long as somebody uses it, and no longer than a maximum.
 *
 * A session belongs to no process. Any process on the store can load it by its id, use it and end
 * it, and it outlives them all. It is a lease with its data on a claim; things that are to end with
 * it are held under its lease (`leasehold.lock(key, { parent: session.lease })`).
 *
 * **Promised.** A session ends no sooner than `ttl` after it was last touched, at most a tenth of the
 * ttl later, and never later than `max` after it began. However busy, it costs at most one renewal
 * in a tenth of its ttl in each process, and processes that all see it share that one. Its end, by
 * whatever cause, takes everything under its lease in the same instant, for everybody. A session
 * whose store cannot be reached is *unknown*: that is an error, and never "there is none".
 *
 * **Not promised.** Data is saved whole and the last write wins: those who read, change and save at
 * the same time lose changes, unless they do it under a lock. A session that was loaded is a
 * snapshot: that it was ended elsewhere shows when it is loaded again or saved, but not in every
 * `touch`.
 *
 * The id is a secret of 128 bits: whoever has it has the session. Only its hash (`ref`) is in keys,
 * events and logs. Data and the names of users can be read by whoever may read the store.
 */
export class Sessions<Data = unknown> {
  readonly #client: Client
  readonly #table: SessionTable
  readonly #options: SessionsOptions

  constructor(client: Client, name = 'main', options: SessionsOptions = {}) {
    this.#client = client
    this.#table = new SessionTable(client, keyPart('the name of the sessions', name))
    this.#options = objectOf('options', options)
    lifeOf({}, options)
  }

  /** Begins a session. */
  async create(wanted: NewSession<Data>): Promise<Session<Data>> {
    if (typeof wanted !== 'object' || wanted === null) {
      throw invalid(`the new session is ${show(wanted)}: give an object such as { user, data }`)
    }
    const { user, data } = wanted
    const { ttl, max } = lifeOf(wanted, this.#options)
    const text = jsonOf(data, 'the data of the session')
    const id = this.#client.random.id()
    const record: SessionRecord = { user, ttl, max, since: undefined, data: text }
    const stored = await this.#table.create(this.#table.refOf(id), record)
    return new IdentifiedSession<Data>(this.#table, stored, id)
  }

  /** The session with this id; `undefined` where there is none, or none any more. */
  async get(id: string): Promise<Session<Data> | undefined> {
    const stored = await this.#table.find(this.#table.refOf(checkId(id)))
    return stored && new IdentifiedSession<Data>(this.#table, stored, id)
  }

  /** Ends the session with this id. Whether there was one. */
  async end(id: string, why = 'ended'): Promise<boolean> {
    return this.#table.end(this.#table.refOf(checkId(id)), why)
  }

  /** The sessions of a user, at most `limit` (1000) of them: one call, and one for each. */
  async list(user: string, options: { limit?: number } = {}): Promise<ListedSession<Data>[]> {
    const { limit = 1000 } = options
    const found = await this.#table.list(user, countOf('limit', limit, 1, LIST_MAX))
    return found.map((stored) => new SeenSession<Data>(this.#table, stored))
  }

  /**
   * Ends the sessions that a user has now, but for the one with the id `except`, and answers with
   * how many there were.
   */
  async endAll(user: string, options: { except?: string; why?: string } = {}): Promise<number> {
    const { except, why = 'all sessions of the user were ended' } = options
    const ref = except === undefined ? undefined : this.#table.refOf(checkId(except))
    return this.#table.endAll(user, ref, why)
  }

  /** Tells of all sessions that begin and end from now on, in whatever process. */
  watch(listener: SessionListener): SessionWatch {
    return watchSessions(this.#client, this.#table.keys, listener)
  }
}

export interface SessionsOptions {
  /** How long a session lives after it was last touched. 20 minutes if not given. */
  readonly ttl?: Duration | undefined
  /** How long it may live in all. 24 hours if not given, or its ttl where that is longer. */
  readonly max?: Duration | undefined
}

export interface NewSession<Data> extends SessionsOptions {
  /** Whose it is, so that all sessions of a user can be listed and ended. */
  readonly user?: string | undefined
  /** Anything that can be written as JSON. */
  readonly data: Data
}

/** A session as it was when it was read. */
export interface KnownSession<Data> {
  /** The hash of the session's id: a name for it that is no secret. */
  readonly ref: string
  readonly user: string | undefined
  readonly data: Data
  /** For what is to end with the session: `leasehold.lock(key, { parent: session.lease })`. */
  readonly lease: LeaseId
  /**
   * Says that the session is in use. Refused with `lease-ended`, and the reason, where the store
   * says that it has ended; but the store is asked at most once in a tenth of the ttl.
   */
  touch(): Promise<void>
  /**
   * Stores new data in place of the old, and touches. The last write wins; the saves of one session
   * object are carried out in their order. Refused with `lease-ended` where the session has ended.
   */
  save(data: Data): Promise<void>
  /** Ends the session, and all that is held under its lease. Twice does nothing. */
  end(why?: string): Promise<void>
}

export interface Session<Data = unknown> extends KnownSession<Data> {
  /** The secret by which it is found: give it to nobody but its user. */
  readonly id: string
}

export interface ListedSession<Data = unknown> extends KnownSession<Data> {
  /** When it began, and when it will be gone unless it is touched. The store's time: to show. */
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
    const text = jsonOf(data, 'the data of the session')
    const saved = this.#saves.then(async () => {
      this.#stored = await this.#table.save(this.#stored, text)
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

/** The times of a session, the wanted ones before the general. Refuses a maximum below the ttl. */
function lifeOf(wanted: SessionsOptions, general: SessionsOptions) {
  const ttlGiven = wanted.ttl ?? general.ttl
  const maxGiven = wanted.max ?? general.max
  const ttl = ttlGiven === undefined ? TTL_MS : milliseconds(ttlGiven, 'ttl')
  if (maxGiven === undefined) return { ttl, max: Math.max(MAX_MS, ttl) }
  const max = milliseconds(maxGiven, 'max')
  // A ttl that nobody asked for gives way.
  if (ttlGiven === undefined) return { ttl: Math.min(ttl, max), max }
  if (max >= ttl) return { ttl, max }
  throw invalid(
    `max ${formatDuration(max)} is shorter than ttl ${formatDuration(ttl)}: a session lives at least for its ttl`,
  )
}

function checkId(id: string): string {
  if (typeof id === 'string') return id
  throw invalid(`the session's id is ${show(id)}: it must be the text that it was created with`)
}
