import {
  DEFAULT_LIMITS,
  type Event,
  isLeaseholdError,
  type Key,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Revision,
  type Token,
} from 'leasehold/port'
import type { Admission } from '../../access/index.ts'
import { type LeaseObject, leaseObject, type StoredLease } from './lease-object.ts'
import { Refusal } from './status.ts'

/** All objects are claims on keys with this prefix, then the namespace, a slash and the name. */
export const PREFIX = 'kubernetes/leases/'
/** The holder that the leases of all objects have. Who leads is in the object. */
const HOLDER = 'kubernetes'
const VALUE_BYTES_MAX = DEFAULT_LIMITS.valueBytes

/** A version of an object. */
export interface Version {
  readonly lease: LeaseId
  readonly token: Token
  readonly stored: StoredLease
}

export interface Page {
  readonly revision: Revision
  readonly versions: readonly Version[]
  /** Set if there is more: the last key of this page. */
  readonly next: Key | undefined
}

/** A change of the object at a key, with the object before and after it. */
export interface Change {
  readonly key: Key
  readonly revision: Revision
  readonly before: LeaseObject | undefined
  readonly after: LeaseObject | undefined
}

/**
 * The objects in the store, as one caller may use them.
 *
 * An object is a claim that never expires, with the object as its value. The token of the claim is
 * the resourceVersion. A write replaces the claim by one with a new token, in one step, and only if
 * the token is still the one that was read. So an object survives what the store survives, its
 * resourceVersion only increases, and the store's revisions are the resourceVersions of lists and
 * watches.
 *
 * Each object has a lease of its own: what a client may do with an object is what its rights say
 * about one key.
 */
export class LeaseStorage {
  readonly #store: LeaseStore
  readonly #actions: Admission['serverActions']

  constructor({ store, serverActions }: Pick<Admission, 'store' | 'serverActions'>) {
    this.#store = store
    this.#actions = serverActions
  }

  async get(key: Key): Promise<Version | undefined> {
    const { claims } = await this.#store.read({ key, limit: 1 })
    return versionOf(claims[0])
  }

  /** A list of one object, for which the right to its key is enough. */
  async listOne(key: Key): Promise<Page> {
    const { revision, claims } = await this.#store.read({ key, limit: 1 })
    const version = versionOf(claims[0])
    return { revision, versions: version === undefined ? [] : [version], next: undefined }
  }

  async list(prefix: string, after?: Key, limit?: number): Promise<Page> {
    const { revision, keys, more } = await this.#store.read({ prefix, after, limit })
    const versions = keys.flatMap(({ claims }) => versionOf(claims[0]) ?? [])
    return { revision, versions, next: more ? keys.at(-1)!.key : undefined }
  }

  /** `undefined` if there is such an object. */
  async create(key: Key, stored: StoredLease): Promise<LeaseObject | undefined> {
    const claims = [{ key, value: jsonOf(stored) }]
    const granted = await this.#store.grant({ holder: HOLDER, ttl: Infinity, claims, ifFree: true })
    if (granted.outcome === 'granted') return leaseObject(stored, granted.token)
    const [ahead] = granted.ahead
    if (versionOf(ahead?.first) !== undefined) return undefined
    throw new LeaseholdError(
      'invalid-argument',
      `${ahead?.first.holder ?? 'another lease'} claims the key ${key}, which is no Lease of Kubernetes: release it first`,
    )
  }

  /** `undefined` if this is no longer the version of the object. */
  async replace(
    key: Key,
    { lease, token: replaces }: Version,
    stored: StoredLease,
  ): Promise<LeaseObject | undefined> {
    const claims = [{ key, value: jsonOf(stored) }]
    const claimed = await unlessChanged(this.#store.claim({ lease, claims, replaces }))
    return claimed?.outcome === 'claimed' ? leaseObject(stored, claimed.token) : undefined
  }

  /** Returns whether this was still the version of the object. */
  async remove(key: Key, { lease, token }: Version): Promise<boolean> {
    const released = await unlessChanged(this.#store.release({ lease, keys: [key], token }))
    if (released === undefined) return false
    const why = 'the object was deleted'
    await unlessChanged(this.#actions.revoke({ target: { lease }, by: HOLDER, why }))
    return true
  }
}

/**
 * The changes in the events of a watch. A version that replaces another has the removal of the other
 * in its own revision. A removal without that is a deletion, by a client or by force.
 */
export function changesOf(events: readonly Event[]): readonly Change[] {
  const changes: Change[] = []
  const before = new Map<Key, LeaseObject>()
  const report = (revision: Revision) => {
    for (const [key, deleted] of before) {
      changes.push({ key, revision, before: deleted, after: undefined })
    }
    before.clear()
  }
  let last = 0
  for (const event of events) {
    if (event.revision !== last) report(last)
    last = event.revision
    const version = versionOf(event)
    if (version === undefined) continue
    const { key, revision, type } = event
    if (type === 'removed') before.set(key, leaseObject(version.stored, revision))
    if (type !== 'held') continue
    const after = leaseObject(version.stored, version.token)
    changes.push({ key, revision, before: before.get(key), after })
    before.delete(key)
  }
  report(last)
  return changes
}

/** Refuses what no store accepts, so that clients do not try it again. */
function jsonOf(stored: StoredLease): string {
  const value = JSON.stringify(stored)
  const bytes = Buffer.byteLength(value)
  if (bytes <= VALUE_BYTES_MAX) return value
  throw new Refusal(413, `the object has ${bytes} bytes: at most ${VALUE_BYTES_MAX} are allowed`)
}

/** `undefined` for a claim that is none of ours: a user may claim any key. */
function versionOf(
  claim: { readonly lease: LeaseId; readonly token: Token; readonly value?: string | undefined } = {
    lease: '',
    token: 0,
  },
): Version | undefined {
  const { lease, token, value = '' } = claim
  try {
    const stored = JSON.parse(value) as StoredLease
    return typeof stored?.metadata?.uid === 'string' ? { lease, token, stored } : undefined
  } catch {
    return undefined
  }
}

/** `undefined` if the claim is no longer there, because another client was faster. */
async function unlessChanged<Answer>(call: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await call
  } catch (error) {
    const isGone =
      isLeaseholdError(error, 'claim-not-found') ||
      isLeaseholdError(error, 'lease-ended') ||
      isLeaseholdError(error, 'lease-not-found')
    if (isGone) return undefined
    throw error
  }
}
