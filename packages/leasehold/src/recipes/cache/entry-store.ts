import type { Client, Hold } from '../../client/index.ts'
import { isLeaseholdError, LeaseholdError, type LeaseId, type Token } from '../../port/index.ts'
import { isGone, storing } from '../refusals.ts'
import { type EntryKeys, type EntryState, entryState, FAILED, type Mark } from './entry-state.ts'

const MESSAGE_MAX = 500

/** How long entries live, in milliseconds. */
export interface EntryLife {
  readonly ttl: number
  /** How much longer a value is served while it is loaded again. */
  readonly stale: number
}

/** The entries of a cache in the store: read, written by their loaders, set and removed. */
export class EntryStore {
  readonly #client: Client

  constructor(client: Client) {
    this.#client = client
  }

  async state(keys: EntryKeys): Promise<EntryState> {
    const { load, values } = await this.#marks(keys)
    return entryState(load, values)
  }

  /**
   * Stores a loaded value, if its loader still is the loader: `false` where it is not.
   *
   * First the claims are made, without the value, and the store's answer says whether the loader's
   * own claim stood before them at that revision. Whoever takes its place later removes them before
   * loading. So when the value is put on them, and the store does that only while they are there,
   * nobody has loaded, set or deleted since.
   */
  async commit(keys: EntryKeys, hold: Hold, text: string, life: EntryLife): Promise<boolean> {
    const { values } = await this.#marks(keys)
    let made: NewClaims | undefined
    try {
      made = await this.#claim(keys, undefined, life)
      if (made.behind !== hold.claimToken) throw overtaken()
      const update = { lease: made.lease, key: keys.value, token: made.token, value: text }
      await storing('the value', this.#client.store.update(update))
    } catch (error) {
      // What is unknown is left alone: it may be stored, and if not it is in nobody's way for long.
      const isRefused = isLeaseholdError(error) && error.outcome === 'refused'
      if (made !== undefined && isRefused) await this.#revoke([made.lease, made.mark])
      if (isGone(error)) return false
      throw error
    }
    // No mark is left of these: while one was there, nobody could become the loader.
    await this.#end([], values)
    return true
  }

  /** Says that loading failed, so that nobody tries again for a while. */
  async fail(keys: EntryKeys, message: string, ttl: number): Promise<void> {
    const value = FAILED + message.slice(0, MESSAGE_MAX).toWellFormed()
    const { holder } = this.#client
    const claims = [{ key: keys.load, mode: 'shared', value } as const]
    await this.#client.store.grant({ holder, ttl, claims })
  }

  /** Stores a value whatever is there: it is the newest at once, and then all else goes. */
  async set(keys: EntryKeys, text: string, life: EntryLife): Promise<void> {
    const { token } = await this.#claim(keys, text, life)
    const { load, values } = await this.#marks(keys)
    const before = (mark: Mark) => mark.token < token
    // A loader's claim is under a lease that it may share: only the claim is removed.
    for (const loader of load.filter((mark) => before(mark) && isLoader(mark))) {
      const target = { key: keys.load, token: loader.token }
      await this.#client.store.revoke({ target, why: 'superseded' })
    }
    await this.#end(load.filter(before), values.filter(before))
  }

  /** Removes the value, and the right to store one that is being loaded. */
  async delete(keys: EntryKeys): Promise<void> {
    const { load, values } = await this.#marks(keys)
    // All claims go in one step; then the leases of those that had one of their own.
    await this.#client.store.revoke({ target: { prefix: keys.base }, why: 'deleted' })
    await this.#end(load, values)
  }

  /** Removes what a dead loader left behind, so that it cannot store anything if it is not dead. */
  async clear(marks: readonly Mark[]): Promise<void> {
    await this.#end(marks, [])
  }

  /** Claims both keys for a value; with the token of what stands before the mark, if anything. */
  async #claim(
    keys: EntryKeys,
    text: string | undefined,
    { ttl, stale }: EntryLife,
  ): Promise<NewClaims> {
    const { store, holder, guarantees } = this.#client
    const value = { key: keys.value, mode: 'shared', value: text } as const
    const mark = { key: keys.load, mode: 'shared' } as const
    const claims = stale > 0 ? [value] : [value, mark]
    const granted = await storing('the value', store.grant({ holder, ttl: ttl + stale, claims }))
    if (granted.outcome === 'busy') throw new Error('a grant that may wait was answered with busy')
    const { lease, token } = granted
    if (stale === 0) return { lease, token, mark: undefined, behind: behindOf(granted.ahead) }
    const marked = await store.grant({
      ...{ holder, ttl, claims: [{ ...mark, value: lease }] },
      // With the value goes its mark. Where the store cannot see to that, it is done by who removes it.
      parent: guarantees.childLeases ? lease : undefined,
    })
    if (marked.outcome === 'busy') throw new Error('a grant that may wait was answered with busy')
    return { lease, token, mark: marked.lease, behind: behindOf(marked.ahead) }
  }

  async #marks(keys: EntryKeys): Promise<{ load: readonly Mark[]; values: readonly Mark[] }> {
    const { keys: found } = await this.#client.store.read({ prefix: keys.base })
    const claims = (key: string) => found.find((entry) => entry.key === key)?.claims ?? []
    return { load: claims(keys.load), values: claims(keys.value) }
  }

  /** Ends the leases of values and of marks. A loader's own lease is not touched. */
  async #end(load: readonly Mark[], values: readonly Mark[]): Promise<void> {
    const leases = new Set(values.map(({ lease }) => lease))
    for (const mark of load) {
      if (isLoader(mark)) continue
      // A mark under a lease of its own names the lease of the value.
      const { value: named, lease } = mark
      const isNamed = named !== undefined && !named.startsWith(FAILED)
      if (isNamed) leases.add(named)
      if (!isNamed || !this.#client.guarantees.childLeases) leases.add(lease)
    }
    await this.#revoke([...leases])
  }

  /** Ends leases. Those that have ended already need not be ended. */
  async #revoke(leases: readonly (LeaseId | undefined)[]): Promise<void> {
    for (const lease of leases) {
      if (lease === undefined) continue
      try {
        await this.#client.store.revoke({ target: { lease }, why: 'replaced' })
      } catch (error) {
        if (!isGone(error)) throw error
      }
    }
  }
}

/** Whether a claim to load is a loader's own. Marks are shared. */
function isLoader({ mode }: Mark): boolean {
  return mode === 'exclusive'
}

/** The claims for a value. */
interface NewClaims {
  readonly lease: LeaseId
  readonly token: Token
  /** The lease of its mark, where it has one of its own. */
  readonly mark: LeaseId | undefined
  /** What stands before the mark. */
  readonly behind: Token | undefined
}

/** The one claim that the mark waits behind; nothing where there is none, or where there are more. */
function behindOf(
  ahead: readonly { readonly count: number; readonly first: Mark }[],
): Token | undefined {
  const [line] = ahead
  return line?.count === 1 ? line.first.token : undefined
}

function overtaken(): LeaseholdError {
  return new LeaseholdError('claim-not-found', 'another has the right to load now')
}
