import type { Client, Hold } from '../../client/index.ts'
import { isLeaseholdError, LeaseholdError, type LeaseId, type Token } from '../../port/index.ts'
import { isGone, storing } from '../refusals.ts'
import { type EntryKeys, type EntryState, entryState, FAILED, type Mark } from './entry-state.ts'

const MESSAGE_MAX = 500

/** How long entries live, in milliseconds. */
export interface EntryLife {
  readonly ttl: number
  /** How much longer a value is served while it is reloaded. */
  readonly stale: number
}

/** Reads and writes the entries of a cache in the store. */
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
   * Stores a loaded value. Returns `false` if its loader is no longer the current one.
   *
   * The claims are made first, without the value. The store's answer says whether the loader's
   * claim was ahead of them at that revision. A later loader removes these claims before it loads.
   * The store writes a value only to an existing claim, so if the update succeeds, nobody has
   * loaded, set or deleted the entry since.
   */
  async commit(
    keys: EntryKeys,
    hold: Pick<Hold, 'claimToken'>,
    json: string,
    life: EntryLife,
  ): Promise<boolean> {
    const { values } = await this.#marks(keys)
    let made: NewClaims | undefined
    try {
      made = await this.#claim(keys, undefined, life)
      if (made.behind !== hold.claimToken) throw overtaken()
      const update = { lease: made.lease, key: keys.value, token: made.token, value: json }
      await storing('the value', this.#client.store.update(update))
    } catch (error) {
      // With an unknown outcome nothing is undone: the value may be stored, and if not, it expires.
      const isRefused = isLeaseholdError(error) && error.outcome === 'refused'
      if (made !== undefined && isRefused) await this.#revoke([made.lease, made.mark])
      if (isGone(error)) return false
      throw error
    }
    // These values have no marks left: while a mark exists, nobody can become the loader.
    await this.#end([], values)
    return true
  }

  /** Publishes a failed load, so that nobody retries for a while. */
  async fail(keys: EntryKeys, message: string, ttl: number): Promise<void> {
    const value = FAILED + message.slice(0, MESSAGE_MAX).toWellFormed()
    const { holder } = this.#client
    const claims = [{ key: keys.load, mode: 'shared', value } as const]
    await this.#client.store.grant({ holder, ttl, claims })
  }

  /** Stores a value unconditionally. It is the newest at once; then everything older is removed. */
  async set(keys: EntryKeys, json: string, life: EntryLife): Promise<void> {
    const { token } = await this.#claim(keys, json, life)
    const { load, values } = await this.#marks(keys)
    const before = (mark: Mark) => mark.token < token
    // A loader's lease may carry other claims, so only its claim is removed.
    for (const loader of load.filter((mark) => before(mark) && isLoader(mark))) {
      const target = { key: keys.load, token: loader.token }
      await this.#client.store.revoke({ target, why: 'superseded' })
    }
    await this.#end(load.filter(before), values.filter(before))
  }

  /** Removes the value, and the claim of a running loader. */
  async delete(keys: EntryKeys): Promise<void> {
    const { load, values } = await this.#marks(keys)
    // One revision removes all claims; then the leases that carried nothing else are ended.
    await this.#client.store.revoke({ target: { prefix: keys.base }, why: 'deleted' })
    await this.#end(load, values)
  }

  /** Removes the marks of a dead loader. If it is still alive, it cannot store anything. */
  async clear(marks: readonly Mark[]): Promise<void> {
    await this.#end(marks, [])
  }

  /** Claims both keys for a value. `behind` is the token of the claim ahead of the mark, if any. */
  async #claim(
    keys: EntryKeys,
    json: string | undefined,
    { ttl, stale }: EntryLife,
  ): Promise<NewClaims> {
    const { store, holder, guarantees } = this.#client
    const value = { key: keys.value, mode: 'shared', value: json } as const
    const mark = { key: keys.load, mode: 'shared' } as const
    const claims = stale > 0 ? [value] : [value, mark]
    const granted = await storing('the value', store.grant({ holder, ttl: ttl + stale, claims }))
    if (granted.outcome === 'busy') throw new Error('a grant that may wait was answered with busy')
    const { lease, token } = granted
    if (stale === 0) return { lease, token, mark: undefined, behind: behindOf(granted.ahead) }
    const marked = await store.grant({
      ...{ holder, ttl, claims: [{ ...mark, value: lease }] },
      // The mark ends with its value. On stores without child leases, whoever removes the value
      // also removes the mark.
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

  /** Ends the leases of values and marks, but not the loader's own lease. */
  async #end(load: readonly Mark[], values: readonly Mark[]): Promise<void> {
    const leases = new Set(values.map(({ lease }) => lease))
    for (const mark of load) {
      if (isLoader(mark)) continue
      // A mark with its own lease names the lease of the value.
      const { value: named, lease } = mark
      const isNamed = named !== undefined && !named.startsWith(FAILED)
      if (isNamed) leases.add(named)
      if (!isNamed || !this.#client.guarantees.childLeases) leases.add(lease)
    }
    await this.#revoke([...leases])
  }

  /** Ends leases and ignores those that have already ended. */
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

/** Whether a claim is the loader's own. Marks are shared claims. */
function isLoader({ mode }: Mark): boolean {
  return mode === 'exclusive'
}

interface NewClaims {
  readonly lease: LeaseId
  readonly token: Token
  /** The lease of the mark, if it has its own. */
  readonly mark: LeaseId | undefined
  /** The token of the claim ahead of the mark. */
  readonly behind: Token | undefined
}

/** The single claim that the mark waits behind; `undefined` if there is none or more than one. */
function behindOf(
  ahead: readonly { readonly count: number; readonly first: Mark }[],
): Token | undefined {
  const [queue] = ahead
  return queue?.count === 1 ? queue.first.token : undefined
}

function overtaken(): LeaseholdError {
  return new LeaseholdError('claim-not-found', 'another process is the loader now')
}
