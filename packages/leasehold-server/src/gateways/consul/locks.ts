import { type Event, isLeaseholdError, type LeaseStore } from 'leasehold/port'
import type { Logger } from 'pino'
import { ConsulError } from './answer.ts'
import type { Entries } from './entries.ts'
import { DELAY, MARK } from './names.ts'
import type { Session, Sessions } from './sessions.ts'

/** What the mark of a session on a key says. */
type Mark = Pick<Session, 'id' | 'behavior' | 'lockDelay'>

/**
 * The locks that sessions have on keys. The entry names the session that has locked it, so a write of
 * the entry decides who acquires it. In the same turn the session marks the key with a claim of its
 * own. When the mark is removed, the session has ended, and the entry is unlocked or deleted. Until
 * then nobody else can acquire it, so the lock-delay, which is a lease, begins before that.
 */
export class Locks {
  readonly #store: LeaseStore
  readonly #entries: Entries
  readonly #sessions: Sessions
  readonly #log: Logger

  constructor(store: LeaseStore, entries: Entries, sessions: Sessions, log: Logger) {
    this.#store = store
    this.#entries = entries
    this.#sessions = sessions
    this.#log = log
  }

  async acquire(key: string, id: string, value: Buffer, flags: number): Promise<boolean> {
    const session = await this.#sessions.get(id)
    if (session === undefined) throw invalidSession(id)
    let marking: Promise<unknown> | undefined
    const writing = this.#entries.change(key, async (entry) => {
      const isHeld = entry?.session === id
      if (entry?.session !== undefined && !isHeld) return undefined
      if (!isHeld && (await this.#isDelayed(key))) return undefined
      const lockIndex = (entry?.lockIndex ?? 0) + (isHeld ? 0 : 1)
      const together = () => {
        if (!isHeld) marking ??= this.#mark(key, session)
        // Its failure is looked at below, after the write.
        marking?.catch(() => {})
      }
      return { value, flags, session: id, terms: session, lockIndex, together }
    })
    const [written] = await Promise.allSettled([writing])
    const [marked] = await Promise.allSettled([marking])
    if (marked.status === 'rejected') await this.#unlock(key, session)
    if (written.status === 'rejected') throw written.reason
    if (marked.status === 'rejected') {
      throw isLeaseholdError(marked.reason, 'lease-ended') ? invalidSession(id) : marked.reason
    }
    if (written.value === undefined) {
      await this.#unmark(key, id)
      return false
    }
    if (marking === undefined || (await this.#marks(key, id)).length > 0) return true
    // The session ended before the entry named it: nothing else would unlock the key.
    await this.#unlock(key, session)
    return false
  }

  async release(key: string, id: string, value: Buffer, flags: number): Promise<boolean> {
    if ((await this.#sessions.get(id)) === undefined) return false
    const done = await this.#entries.change(key, (entry) =>
      entry?.session === id ? { value, flags, session: null } : undefined,
    )
    if (done === undefined) return false
    await this.#unmark(key, id)
    return true
  }

  /** After a locked key was deleted: its session no longer has it. */
  async forget(key: string, session: string): Promise<void> {
    await this.#unmark(key, session)
  }

  /**
   * Unlocks or deletes the entries of sessions that ended while no server was running. When that was
   * is not known, so the lock-delay begins now.
   */
  async recover(): Promise<void> {
    for (const { key, session: id, terms } of await this.#entries.list('')) {
      if (id === undefined || (await this.#sessions.get(id)) !== undefined) continue
      await this.#unlock(key, { id, ...terms })
    }
  }

  /** A mark that was removed by force belonged to a session that has ended. */
  onEvent({ type, key, value, end }: Event): void {
    if (type !== 'removed' || end?.reason === 'released' || !key.startsWith(MARK)) return
    this.#unlock(key.slice(MARK.length), JSON.parse(value ?? '{}') as Mark).catch((error) =>
      this.#log.error({ err: error }, 'the Consul API cannot unlock a key'),
    )
  }

  /** Marks are shared: several sessions may try at once, and the entry decides. */
  #mark(key: string, { id, lease, behavior, lockDelay }: Session): Promise<unknown> {
    const value = JSON.stringify({ id, behavior, lockDelay } satisfies Mark)
    const claims = [{ key: `${MARK}${key}`, mode: 'shared', value }] as const
    return this.#store.claim({ lease, claims })
  }

  async #marks(key: string, id: string) {
    const { claims } = await this.#store.read({ key: `${MARK}${key}` })
    return claims.filter(({ value }) => (JSON.parse(value ?? '{}') as Mark).id === id)
  }

  async #unmark(key: string, id: string): Promise<void> {
    for (const { lease, token } of await this.#marks(key, id)) {
      const released = this.#store.release({ lease, keys: [`${MARK}${key}`], token })
      await released.catch((error: unknown) => {
        if (!isLeaseholdError(error)) throw error
      })
    }
  }

  async #isDelayed(key: string): Promise<boolean> {
    return (await this.#store.read({ key: `${DELAY}${key}`, limit: 1 })).count > 0
  }

  async #unlock(key: string, { id, behavior, lockDelay }: Mark): Promise<void> {
    let isDelayed = lockDelay === 0
    await this.#entries.change(key, async (entry) => {
      if (entry?.session !== id) return undefined
      if (!isDelayed) {
        const claims = [{ key: `${DELAY}${key}` }]
        const lease = { holder: `consul-session:${id}`, ttl: Math.max(lockDelay, 10) }
        await this.#store.grant({ ...lease, claims, ifFree: true })
        isDelayed = true
      }
      return behavior === 'delete' ? 'delete' : { session: null }
    })
  }
}

function invalidSession(id: string): ConsulError {
  return new ConsulError(500, `invalid session "${id}"`)
}
