import type { Client } from '../../client/index.ts'
import {
  type Duration,
  invalid,
  isLeaseholdError,
  knownNames,
  milliseconds,
  show,
} from '../../port/index.ts'
import { functionOf, keyPart, optionsOf } from '../arguments.ts'
import { jsonOf } from '../values/json.ts'
import type { SessionRecord } from './record.ts'
import { SessionTable } from './session-table.ts'

/**
 * A store for express-session, @fastify/session, and anything with the same store interface. This
 * library does not depend on them: the interface is declared here.
 *
 * **Promised.** Everything that `Sessions` promises. A request that does not change its session
 * costs at most one renewal per tenth of the ttl and no other write, even if the framework saves it
 * with every response (`resave`, or `rolling` of @fastify/session). A running request cannot bring
 * back a session that was ended meanwhile, as long as the store remembers the end. An unreachable
 * store is an error, never "no session", which would log everybody out.
 *
 * **Not promised.** If two requests change one session at the same time, the last write wins.
 *
 * The ttl is the `maxAge` of the session's cookie, or `ttl` if there is none. If an application
 * changes it, or the user, the session continues under another lease, and its `max` starts again.
 */
export interface WebSessionStore {
  get(id: string, callback: (error: unknown, session?: WebSession | null) => void): void
  set(id: string, session: object, callback?: (error?: unknown) => void): void
  destroy(id: string, callback?: (error?: unknown) => void): void
  touch(id: string, session: object, callback?: (error?: unknown) => void): void
  /** All sessions, without their ids, which nobody knows. At most 10,000. */
  all(callback: (error: unknown, sessions?: WebSession[]) => void): void
  length(callback: (error: unknown, length?: number) => void): void
  clear(callback?: (error?: unknown) => void): void
}

/**
 * A session as frameworks know it: the application's data beside its cookie. The framework and the
 * application decide which fields it has.
 */
// biome-ignore lint/suspicious/noExplicitAny: their own types say what is in it, each another thing
export type WebSession = any

export interface WebStoreOptions<Base extends object = object> {
  /** `session.Store` of express-session, which its stores must extend. */
  readonly Store?: (abstract new () => Base) | undefined
  /** The name of these sessions, for `leasehold.sessions(name)`. Default: `web`. */
  readonly name?: string | undefined
  /** How long a session lives if its cookie has no `maxAge`. Default: 1 day. */
  readonly ttl?: Duration | undefined
  /** The longest life of a session. Default: no limit. */
  readonly max?: Duration | undefined
  /** Returns the user of a session, so that a user's sessions can be listed and ended. */
  readonly user?: ((session: WebSession) => string | undefined) | undefined
}

const WEB_STORE_OPTIONS = knownNames<WebStoreOptions>({
  Store: true,
  name: true,
  ttl: true,
  max: true,
  user: true,
})
const DAY_MS = 86_400_000
const ALL_MAX = 10_000

export function sessionStore<Base extends object>(
  client: Client,
  options: WebStoreOptions<Base> = {},
): WebSessionStore & Base {
  const calls = new WebCalls(client, options)
  const { Store: Made = Object as unknown as abstract new () => Base } = options
  if (typeof Made !== 'function') {
    throw invalid(`Store is ${show(Made)}: give the class, session.Store`)
  }
  const store: WebSessionStore = {
    get: (id, callback) => answer(calls.get(id), callback),
    set: (id, session, callback) => answer(calls.set(id, session), callback),
    destroy: (id, callback) => answer(calls.destroy(id), callback),
    touch: (id, session, callback) => answer(calls.touch(id, session), callback),
    all: (callback) => answer(calls.all(), callback),
    length: (callback) => answer(calls.length(), callback),
    clear: (callback) => answer(calls.clear(), callback),
  }
  const Concrete = Made as unknown as new () => Base
  return Object.assign(new Concrete(), store)
}

/** Calls back once, outside of the promise, so that errors of the callback are its own. */
function answer<Value>(
  promise: Promise<Value>,
  callback: ((error: unknown, value?: Value) => void) | undefined,
): void {
  promise.then(
    (value) => queueMicrotask(() => callback?.(null, value)),
    (error) => queueMicrotask(() => callback?.(error)),
  )
}

class WebCalls {
  readonly #client: Client
  readonly #table: SessionTable
  readonly #ttl: number
  readonly #max: number
  readonly #user: (session: WebSession) => string | undefined

  constructor(client: Client, options: WebStoreOptions) {
    optionsOf('sessionStore', options, WEB_STORE_OPTIONS)
    const { name = 'web', ttl = DAY_MS, max = Infinity, user = () => undefined } = options
    this.#client = client
    this.#table = new SessionTable(client, keyPart('the name of the session store', name))
    this.#ttl = milliseconds(ttl, 'ttl')
    this.#max = milliseconds(max, 'max')
    this.#user = functionOf('user', user)
  }

  async get(id: string): Promise<WebSession | null> {
    const stored = await this.#table.find(this.#refOf(id))
    return stored === undefined ? null : JSON.parse(stored.record.data)
  }

  async set(id: string, session: object): Promise<void> {
    const ref = this.#refOf(id)
    const record = this.#recordOf(session)
    const old = await this.#table.find(ref)
    if (old === undefined) return this.#begin(ref, record)
    if (old.record.ttl !== record.ttl || old.record.user !== record.user) {
      await this.#table.replace(old, record)
      return
    }
    if (old.record.data !== record.data) await ignoreEnded(this.#table.save(old, record.data))
    await ignoreEnded(this.#table.touch(old))
  }

  async touch(id: string, session: object): Promise<void> {
    await ignoreEnded(this.#table.touchRef(this.#refOf(id), this.#ttlOf(session)))
  }

  async destroy(id: string): Promise<void> {
    await this.#table.end(this.#refOf(id), 'destroyed')
  }

  async all(): Promise<WebSession[]> {
    const stored = await this.#table.list(undefined, ALL_MAX)
    return stored.map(({ record }) => JSON.parse(record.data))
  }

  async length(): Promise<number> {
    let count = 0
    for await (const refs of this.#table.refs()) count += refs.length
    return count
  }

  async clear(): Promise<void> {
    await this.#table.endAll(undefined, undefined, 'cleared')
  }

  async #begin(ref: string, record: SessionRecord): Promise<void> {
    // Frameworks create a new id for every new session, so a known id was ended meanwhile.
    if (await this.#table.hasEnded(ref)) {
      const key = this.#table.keys.ofId(ref)
      const detail = 'a request saved a session that has ended; it stays ended'
      this.#client.emit({ recipe: 'session', event: 'refused', key, detail, level: 'warn' })
      return
    }
    const stored = await this.#table.create(ref, record)
    if (stored.record.data !== record.data) await ignoreEnded(this.#table.save(stored, record.data))
  }

  #refOf(id: string): string {
    if (typeof id === 'string') return this.#table.refOf(id)
    throw invalid(`the session's id is ${show(id)}: it must be a string`)
  }

  #recordOf(session: object): SessionRecord {
    const data = jsonOf(session, 'the session')
    const plain = JSON.parse(data) as WebSession
    const user = this.#user(plain) ?? undefined
    const ttl = this.#ttlOf(session)
    const json = hasMaxAge(plain) ? jsonOf(withoutExpiry(plain), 'the session') : data
    return { user, ttl, max: this.#max, since: undefined, data: json }
  }

  #ttlOf(session: WebSession): number {
    const ttl = hasMaxAge(session) ? session.cookie.originalMaxAge : this.#ttl
    return Math.min(Math.max(ttl, this.#client.guarantees.ttl.min), this.#max)
  }
}

/** Ignores that a session was ended elsewhere during a request, which is normal. */
async function ignoreEnded(call: Promise<unknown>): Promise<void> {
  try {
    await call
  } catch (error) {
    if (!isLeaseholdError(error, 'lease-ended')) throw error
  }
}

function hasMaxAge(session: WebSession): boolean {
  return typeof session?.cookie?.originalMaxAge === 'number'
}

/**
 * The session without the expiry time of its cookie. That time changes with every request and would
 * cause a write each time; both frameworks compute it from `maxAge`.
 */
function withoutExpiry(session: WebSession): WebSession {
  const { expires: _, originalExpires: __, ...cookie } = session.cookie
  return { ...session, cookie: { ...cookie, maxAge: cookie.originalMaxAge } }
}
