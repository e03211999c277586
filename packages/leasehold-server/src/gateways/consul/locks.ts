import type { Event, KeyReading, LeaseStore, Revision, Token } from 'leasehold/port'
import { ConsulError } from './answer.ts'
import { type Entries, lockerIn } from './entries.ts'
import { DELAY, ENTRY, SESSION } from './names.ts'
import { type Session, type Sessions, sessionIn } from './sessions.ts'

/** How many entries are unlocked at once when sessions end. */
const UNLOCKS_AT_ONCE = 64

export interface LocksOptions {
  readonly store: LeaseStore
  readonly entries: Entries
  readonly sessions: Sessions
  /** The work of an event failed: `recover` has to be called. */
  readonly onFailure: (error: unknown) => void
}

/** The session that an entry names, and the token of that entry. */
interface Locker {
  readonly session: string
  readonly token: Token
}

/**
 * The locks that sessions have on keys. The entry names the session that has locked it, so a write of
 * the entry decides who acquires it. When a session ends, every server unlocks or deletes the entries
 * that name it, and the write of one of them succeeds. Until then nobody else can acquire them, so
 * the lock-delay, which is a lease, begins before that.
 *
 * Events show which entries name which session, and which sessions live. An entry that names a
 * session whose end was seen earlier, or whose beginning was not seen, is looked up in the store. So
 * no entry stays locked by a session that has ended.
 */
export class Locks {
  readonly #options: LocksOptions
  /** Sessions whose beginning was seen, and whose end was not. */
  readonly #live = new Map<string, Session>()
  readonly #lockers = new Map<string, Locker>()
  readonly #keysOf = new Map<string, Set<string>>()
  /** Keys to unlock, and their sessions. */
  readonly #ended = new Map<string, string>()
  #unlocking = 0

  constructor(options: LocksOptions) {
    this.#options = options
  }

  async acquire(key: string, id: string, value: Buffer, flags: number): Promise<boolean> {
    if (id === '') throw new ConsulError(500, 'missing session')
    const { entries, sessions } = this.#options
    const session = this.#live.get(id) ?? (await sessions.get(id))
    if (session === undefined) throw invalidSession(id)
    // What the write depends on is read beside it, and again if the answer turns out to be too old.
    const delay = this.#delay(key)
    delay.catch(() => {})
    let standing: ReturnType<Sessions['read']> | undefined
    const sent = () => {
      standing = sessions.read(id)
      standing.catch(() => {})
    }
    const written = await entries.change(key, async (entry, revision) => {
      const isHeld = entry?.session === id
      if (entry?.session !== undefined && !isHeld) return undefined
      if (!isHeld && (await this.#isDelayed(key, revision, delay))) return undefined
      const lockIndex = (entry?.lockIndex ?? 0) + (isHeld ? 0 : 1)
      return { value, flags, session: id, terms: session, lockIndex, sent }
    })
    if (written === undefined) return false
    const after = await standing
    const isRecent = after !== undefined && after.revision >= written
    if ((isRecent ? after : await sessions.read(id)).session !== undefined) return true
    // The session ended before the entry named it.
    await this.#unlock(key, id)
    throw invalidSession(id)
  }

  async release(key: string, id: string, value: Buffer, flags: number): Promise<boolean> {
    const { entries, sessions } = this.#options
    if ((await sessions.get(id)) === undefined) return false
    const done = await entries.change(key, (entry) =>
      entry?.session === id ? { value, flags, session: null } : undefined,
    )
    return done !== undefined
  }

  /**
   * Unlocks or deletes the entries of sessions that ended while this server did not watch. When that
   * was is not known, so the lock-delay begins now.
   */
  async recover(): Promise<void> {
    const { entries, sessions } = this.#options
    this.#live.clear()
    this.#lockers.clear()
    this.#keysOf.clear()
    const locked = (await entries.list('')).filter(({ session }) => session !== undefined)
    if (locked.length === 0) return
    const live = new Set((await sessions.list()).map(({ id }) => id))
    for (const { key, session, modifyIndex } of locked) {
      const known = this.#lockers.get(key)
      if (known === undefined) this.#note(key, { session: session!, token: modifyIndex })
      if (!live.has(session!)) await this.#unlock(key, session!)
    }
  }

  onEvent(event: Event): void {
    if (event.key.startsWith(SESSION)) this.#onSession(event)
    else if (event.key.startsWith(ENTRY)) this.#onEntry(event)
  }

  #onSession(event: Event): void {
    const id = event.key.slice(SESSION.length)
    if (event.type === 'claimed') {
      const session = sessionIn(event)
      if (session) this.#live.set(id, session)
    } else if (event.type === 'removed') {
      this.#live.delete(id)
      for (const key of this.#keysOf.get(id) ?? []) this.#unlockSoon(key, id)
    }
  }

  #onEntry({ type, key: storeKey, token, value }: Event): void {
    const key = storeKey.slice(ENTRY.length)
    if (type === 'claimed') {
      this.#forget(key)
      const session = lockerIn(value)
      if (session === undefined) return
      this.#note(key, { session, token })
      if (!this.#live.has(session)) this.#unlockSoon(key, session)
    } else if (type === 'removed' && this.#lockers.get(key)?.token === token) this.#forget(key)
  }

  #note(key: string, locker: Locker): void {
    this.#lockers.set(key, locker)
    const keys = this.#keysOf.get(locker.session)
    if (keys) keys.add(key)
    else this.#keysOf.set(locker.session, new Set([key]))
  }

  #forget(key: string): void {
    const locker = this.#lockers.get(key)
    if (locker === undefined) return
    this.#lockers.delete(key)
    const keys = this.#keysOf.get(locker.session)
    keys?.delete(key)
    if (keys?.size === 0) this.#keysOf.delete(locker.session)
  }

  #unlockSoon(key: string, session: string): void {
    this.#ended.set(key, session)
    if (this.#unlocking < UNLOCKS_AT_ONCE) void this.#unlockEnded()
  }

  async #unlockEnded(): Promise<void> {
    this.#unlocking++
    for (const [key, session] of this.#ended) {
      this.#ended.delete(key)
      await this.#unlock(key, session).catch(this.#options.onFailure)
    }
    this.#unlocking--
  }

  /** Unlocks or deletes the entry if it names this session and the session has ended. */
  async #unlock(key: string, id: string): Promise<void> {
    const { store, entries, sessions } = this.#options
    if ((await sessions.get(id)) !== undefined) return
    let isDelayed = false
    await entries.change(key, async (entry) => {
      if (entry?.session !== id) return undefined
      const { behavior, lockDelay } = entry.terms
      if (!isDelayed && lockDelay > 0) {
        const claims = [{ key: `${DELAY}${key}` }]
        const ttl = Math.max(lockDelay, store.guarantees.ttl.min)
        await store.grant({ holder: `consul-session:${id}`, ttl, claims, ifFree: true })
        isDelayed = true
      }
      return behavior === 'delete' ? 'delete' : { session: null }
    })
  }

  #delay(key: string): Promise<KeyReading> {
    return this.#options.store.read({ key: `${DELAY}${key}`, limit: 1 })
  }

  /** Whether the key has a lock-delay at this revision or later. `known` may be older. */
  async #isDelayed(key: string, revision: Revision, known: Promise<KeyReading>): Promise<boolean> {
    const reading = await known
    const isRecent = reading.revision >= revision
    return (isRecent ? reading : await this.#delay(key)).count > 0
  }
}

function invalidSession(id: string): ConsulError {
  return new ConsulError(500, `invalid session "${id}"`)
}
