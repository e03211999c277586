import type { Client } from '../../client/index.ts'
import {
  type Claim,
  type End,
  LeaseholdError,
  type LeaseId,
  sha256,
  type Time,
  type Token,
} from '../../port/index.ts'
import { isGone, storing } from '../refusals.ts'
import {
  ActivityCache,
  isRenewalDue,
  newActivity,
  noteReading,
  RENEWAL_PART,
  type SessionActivity,
} from './activity.ts'
import { decode, encode, SessionKeys, type SessionRecord } from './record.ts'

/** A session as last read or written. */
export interface Stored {
  readonly ref: string
  readonly lease: LeaseId
  readonly token: Token
  readonly record: SessionRecord
}

/** Times by the store's clock. */
export interface StoredTimes extends Stored {
  readonly createdAt: Time
  readonly until: Time
}

const PAGE = 1000
/** The number of concurrent calls in an operation on many sessions. */
const AT_ONCE = 64
/** The reason for ending a lease whose session continues under another. */
export const REPLACED = 'replaced'

/**
 * The sessions of one name in the store. A session is the newest claim on its key. There is only
 * one, except for the moment in which a lease replaces another.
 */
export class SessionTable {
  readonly keys: SessionKeys
  readonly #client: Client
  readonly #activities = new ActivityCache()

  constructor(client: Client, name: string) {
    this.#client = client
    this.keys = new SessionKeys(name)
  }

  /** The public name of a session, used in keys and events in place of its id. */
  refOf(id: string): string {
    return sha256(id)
  }

  async find(ref: string): Promise<StoredTimes | undefined> {
    const sentAt = this.#client.now()
    const { claims } = await this.#client.store.read({ key: this.keys.ofId(ref) })
    const claim = claims.at(-1)
    if (claim === undefined) {
      this.#activities.delete(ref)
      return undefined
    }
    return this.#seen(ref, claim, sentAt)
  }

  /** Creates a session, or returns the existing one. */
  async create(ref: string, record: SessionRecord): Promise<Stored> {
    const sentAt = this.#client.now()
    const granted = await this.#grant(ref, record, true)
    if (granted.outcome === 'busy') return this.#stored(ref, granted.ahead[0]!.first)
    this.#activities.set(ref, newActivity(granted.lease, sentAt))
    this.#emit('created', ref, granted.token, record.user)
    return { ref, lease: granted.lease, token: granted.token, record }
  }

  /**
   * Gives a session another ttl or user, which needs another lease. The new claim counts at once,
   * and only then the old lease is ended: the session always exists.
   */
  async replace(old: StoredTimes, record: SessionRecord): Promise<void> {
    const { ref } = old
    const sentAt = this.#client.now()
    const since = old.record.since ?? old.createdAt
    const granted = await this.#grant(ref, { ...record, since }, false)
    if (granted.outcome === 'busy') throw new Error('a grant that may wait was answered with busy')
    this.#activities.set(ref, newActivity(granted.lease, sentAt))
    await this.#revoke(old.lease, REPLACED)
  }

  /** Stores new data. The last write wins. */
  async save(stored: Stored, data: string): Promise<Stored> {
    const { ref, lease, token } = stored
    const record = { ...stored.record, data }
    const request = { lease, key: this.keys.ofId(ref), token, value: encode(record) }
    try {
      await storing('the data of the session', this.#client.store.update(request))
    } catch (error) {
      throw isGone(error) ? await this.#ended(stored) : error
    }
    return { ref, lease, token, record }
  }

  /** Renews the session, unless that happened a short while ago. */
  touch(stored: Stored): Promise<void> {
    const { ref, lease, record } = stored
    const activity =
      this.#activities.get(ref, lease) ?? this.#activities.set(ref, newActivity(lease, -Infinity))
    if (activity.pending !== undefined) return activity.pending
    if (!isRenewalDue(activity, record.ttl, this.#client.now())) return Promise.resolve()
    activity.pending = this.#renew(stored, activity).finally(() => {
      activity.pending = undefined
    })
    return activity.pending
  }

  /** Like `touch`, for a session that was seen before. Makes no call if no renewal is due. */
  async touchRef(ref: string, ttl: number): Promise<void> {
    const activity = this.#activities.last(ref)
    if (activity !== undefined && !isRenewalDue(activity, ttl, this.#client.now())) return
    const stored = await this.find(ref)
    if (stored !== undefined) await this.touch(stored)
  }

  /** Ends the session and everything under its leases. Returns whether there was one. */
  async end(ref: string, why: string): Promise<boolean> {
    const { claims } = await this.#client.store.read({ key: this.keys.ofId(ref) })
    this.#activities.delete(ref)
    const ends = await Promise.all(claims.map(({ lease }) => this.#revoke(lease, why)))
    if (ends.at(-1)) this.#emit('ended', ref, claims.at(-1)!.token, undefined, why)
    return ends.includes(true)
  }

  /** The refs of all sessions, or of one user's, page by page. */
  async *refs(user?: string): AsyncGenerator<readonly string[]> {
    const prefix = user === undefined ? this.keys.ids : this.keys.ofUser(user)
    let after: string | undefined
    for (let more = true; more; ) {
      const page = await this.#client.store.read({ prefix, after, limit: PAGE })
      yield page.keys.map(({ key }) => this.keys.refOf(key))
      more = page.more
      after = page.keys.at(-1)?.key
    }
  }

  /** All sessions, or one user's, at most `limit`. */
  async list(user: string | undefined, limit: number): Promise<StoredTimes[]> {
    const found: StoredTimes[] = []
    for await (const refs of this.refs(user)) {
      const wanted = refs.slice(0, limit - found.length)
      const sessions = await inBatches(wanted, (ref) => this.find(ref))
      for (const session of sessions) if (session !== undefined) found.push(session)
      if (found.length >= limit) break
    }
    return found
  }

  /** Ends all sessions, or one user's. Sessions that begin meanwhile may survive. */
  async endAll(user: string | undefined, except: string | undefined, why: string): Promise<number> {
    let ended = 0
    for await (const refs of this.refs(user)) {
      const ends = await inBatches(refs, (ref) => (ref === except ? false : this.end(ref, why)))
      ended += ends.filter((wasThere) => wasThere).length
    }
    return ended
  }

  /** Whether this session has ended, as far as the store remembers. */
  async hasEnded(ref: string): Promise<boolean> {
    const { tenures } = await this.#client.store.read({ history: this.keys.ofId(ref) })
    return tenures.length > 0
  }

  #grant(ref: string, record: SessionRecord, ifFree: boolean) {
    const { user, ttl, max } = record
    const [id, ...others] = this.keys.all(ref, user)
    const claims = [{ key: id!, value: encode(record) }, ...others.map((key) => ({ key }))]
    const granted = this.#client.store.grant({
      holder: user?.slice(0, HOLDER_MAX) ?? 'nobody',
      ttl,
      // Renewals come up to this part of the ttl late. Without the grace a session would end too
      // soon.
      grace: ttl === Infinity ? 0 : ttl * RENEWAL_PART,
      maxLife: max,
      claims,
      ifFree,
    })
    return storing('the data of the session', granted)
  }

  async #renew(stored: Stored, activity: SessionActivity): Promise<void> {
    const sentAt = this.#client.now()
    const { lost } = await this.#client.store.renew([stored.lease])
    if (lost.length > 0) {
      this.#activities.delete(stored.ref)
      throw endedError(stored, lost[0]!.end)
    }
    activity.renewedAfter = sentAt
  }

  /** Returns whether there was a lease to end. */
  async #revoke(lease: LeaseId, why: string): Promise<boolean> {
    try {
      await this.#client.store.revoke({ target: { lease }, by: this.#client.holder, why })
      return true
    } catch (error) {
      if (isGone(error)) return false
      throw error
    }
  }

  #seen(ref: string, claim: Claim, sentAt: number): StoredTimes {
    const { lease, until } = claim
    const activity = this.#activities.get(ref, lease) ?? newActivity(lease, -Infinity)
    noteReading(this.#activities.set(ref, activity), until, sentAt)
    const stored = this.#stored(ref, claim)
    return { ...stored, createdAt: stored.record.since ?? claim.claimedAt, until }
  }

  #stored(ref: string, claim: Claim): Stored {
    return { ref, lease: claim.lease, token: claim.token, record: decode(claim) }
  }

  async #ended(stored: Stored): Promise<LeaseholdError> {
    this.#activities.delete(stored.ref)
    const { end } = await this.#client.store.read({ lease: stored.lease })
    return endedError(stored, end)
  }

  #emit(
    event: 'created' | 'ended',
    ref: string,
    token: Token,
    user: string | undefined,
    why?: string,
  ): void {
    const whose = user === undefined ? '' : ` of ${user}`
    const detail = `a session${whose} was ${event}${why === undefined ? '' : `: ${why}`}`
    this.#client.emit({ recipe: 'session', event, key: this.keys.ofId(ref), token, detail })
  }
}

/** The store's limit for the name of a holder. */
const HOLDER_MAX = 256

function endedError({ ref }: Stored, end: End | undefined): LeaseholdError {
  const how = end === undefined ? '' : `: ${end.reason}${end.why ? ` (${end.why})` : ''}`
  return new LeaseholdError(
    'lease-ended',
    `the session ${ref.slice(0, 8)}… has ended${how}. Create a new one`,
    end,
  )
}

/** Runs `act` for each item, with limited concurrency. */
async function inBatches<From, To>(
  from: readonly From[],
  act: (item: From) => Promise<To> | To,
): Promise<To[]> {
  const results: To[] = []
  for (let at = 0; at < from.length; at += AT_ONCE) {
    results.push(...(await Promise.all(from.slice(at, at + AT_ONCE).map(act))))
  }
  return results
}
