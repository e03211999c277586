import {
  type Claim,
  isLeaseholdError,
  type Key,
  type LeaseStore,
  type Revision,
} from 'leasehold/port'
import { ConsulError } from './answer.ts'
import { ENTRY } from './names.ts'
import { readAll } from './read-all.ts'

/** A value of the key-value store, as Consul describes it. */
export interface Entry {
  readonly key: string
  readonly value: Buffer
  readonly flags: number
  readonly session: string | undefined
  /** What happens to the key when its session ends. */
  readonly terms: LockTerms
  readonly lockIndex: number
  readonly createIndex: Revision
  /** The token of its claim: the version of the value. */
  readonly modifyIndex: Revision
  readonly lease: string
}

/** What a session wants for the keys that it has locked. */
export interface LockTerms {
  readonly behavior: 'release' | 'delete'
  /** In milliseconds. */
  readonly lockDelay: number
}

/** What a write sets. Everything else stays. */
export interface Change {
  readonly value?: Buffer
  readonly flags?: number
  /** `null` removes it. */
  readonly session?: string | null
  /** Given with a session. */
  readonly terms?: LockTerms
  readonly lockIndex?: number
  /** Called when the write was sent to the store, and before its answer. */
  readonly sent?: () => void
}

/** What to do with an entry; `undefined`: nothing. */
export type Decision = Change | 'delete' | undefined

/** The header of a stored value: JSON before the first line break. */
interface Header {
  readonly f: number
  readonly l: number
  readonly c?: number
  readonly s?: string
  /** The lock-delay of the session, and whether it deletes its keys. */
  readonly d?: number
  readonly r?: 1
  /** The value is in base64, because it is not UTF-8. */
  readonly b?: 1
}

/** Writes that lose against others are repeated at most so often. */
const ATTEMPTS = 1000

/**
 * Consul's key-value store on a lease store. Each key is an exclusive claim under a lease of its own
 * that never ends. Its token is the `ModifyIndex`, and a change replaces the claim, so every write is
 * a compare-and-set.
 */
export class Entries {
  readonly #store: LeaseStore

  constructor(store: LeaseStore) {
    this.#store = store
  }

  async get(key: string): Promise<Entry | undefined> {
    return (await this.#read(key)).entry
  }

  async list(prefix: string): Promise<readonly Entry[]> {
    const keys = await readAll(this.#store, storeKey(prefix))
    return keys.flatMap(({ claims: [claim] }) => (claim && entryIn(claim)) ?? [])
  }

  /**
   * Writes what `decide` makes of the current entry and the revision at which it was read, and decides
   * again if another write was first. Returns the revision of the write, or `undefined` if `decide`
   * wants no change.
   */
  async change(
    key: string,
    decide: (entry: Entry | undefined, revision: Revision) => Decision | Promise<Decision>,
  ): Promise<Revision | undefined> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const { entry, revision } = await this.#read(key)
      const change = await decide(entry, revision)
      if (change === undefined || (change === 'delete' && entry === undefined)) return undefined
      const writing = change === 'delete' ? this.#delete(entry!) : this.#write(key, entry, change)
      if (change !== 'delete') change.sent?.()
      const written = await writing
      if (written !== undefined) return written
    }
    throw new ConsulError(500, `${ATTEMPTS} other writes of ${key} were first`)
  }

  async #read(
    key: string,
  ): Promise<{ readonly entry: Entry | undefined; readonly revision: Revision }> {
    const { claims, revision } = await this.#store.read({ key: storeKey(key), limit: 1 })
    return { entry: claims[0] && entryIn(claims[0]), revision }
  }

  async #write(
    key: string,
    entry: Entry | undefined,
    change: Change,
  ): Promise<Revision | undefined> {
    const claim = { key: storeKey(key), value: storedValue(entry, change) }
    if (entry === undefined) {
      const lease = { holder: 'consul-kv', ttl: Infinity, claims: [claim], ifFree: true }
      const answer = await this.#store.grant(lease)
      return answer.outcome === 'granted' ? answer.revision : undefined
    }
    const { lease, modifyIndex } = entry
    const replaced = this.#store.claim({ lease, claims: [claim], replaces: modifyIndex })
    return (await orLost(replaced))?.revision
  }

  /** Releases the claim first, on the condition that it is current, and then ends its lease. */
  async #delete({ key, lease, modifyIndex }: Entry): Promise<Revision | undefined> {
    const keys = [storeKey(key)]
    const released = await orLost(this.#store.release({ lease, keys, token: modifyIndex }))
    if (released) await orLost(this.#store.revoke({ target: { lease }, by: 'consul-kv' }))
    return released?.revision
  }
}

function storeKey(key: string): Key {
  return `${ENTRY}${key}`
}

/** The answer, or `undefined` if another write was first. */
async function orLost<Answer>(call: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await call
  } catch (error) {
    const isLost =
      isLeaseholdError(error, 'claim-not-found') ||
      isLeaseholdError(error, 'lease-ended') ||
      isLeaseholdError(error, 'lease-not-found')
    if (isLost) return undefined
    throw error
  }
}

/** The session that a stored value names, if any. */
export function lockerIn(value: string | undefined): string | undefined {
  return headerIn(value)?.s
}

/** `undefined` if something else has written this value. */
function headerIn(value = ''): Header | undefined {
  try {
    const header: unknown = JSON.parse(value.slice(0, value.indexOf('\n')))
    return typeof header === 'object' && header !== null ? (header as Header) : undefined
  } catch {
    return undefined
  }
}

function entryIn({ key, token, lease, value = '' }: Claim): Entry | undefined {
  const header = headerIn(value)
  if (header === undefined) return undefined
  const end = value.indexOf('\n')
  return {
    key: key.slice(ENTRY.length),
    value: Buffer.from(value.slice(end + 1), header.b ? 'base64' : 'utf8'),
    flags: header.f,
    session: header.s,
    terms: { behavior: header.r ? 'delete' : 'release', lockDelay: header.d ?? 0 },
    lockIndex: header.l,
    createIndex: header.c ?? token,
    modifyIndex: token,
    lease,
  }
}

function storedValue(entry: Entry | undefined, change: Change): string {
  const value = change.value ?? entry?.value ?? Buffer.alloc(0)
  const session = change.session === undefined ? entry?.session : change.session
  const terms = change.terms ?? entry?.terms
  const text = value.toString('utf8')
  const isText = Buffer.from(text, 'utf8').equals(value)
  const header: Header = {
    f: change.flags ?? entry?.flags ?? 0,
    l: change.lockIndex ?? entry?.lockIndex ?? 0,
    ...(entry && { c: entry.createIndex }),
    ...(session && { s: session, d: terms?.lockDelay ?? 0 }),
    ...(session && terms?.behavior === 'delete' && { r: 1 }),
    ...(!isText && { b: 1 }),
  }
  return `${JSON.stringify(header)}\n${isText ? text : value.toString('base64')}`
}
