import { Recent } from '../../kernel/index.ts'
import type { Claim, Clock, End, Key, LeaseId, Token } from '../../port/index.ts'
import type { Api } from './api.ts'
import {
  type Layout,
  type LeaseRecord,
  leaseIdOf,
  leaseNumber,
  parseLeaseId,
  readEnd,
  readLease,
  type StoredClaim,
} from './layout.ts'
import type { KeyValue } from './messages.ts'

const EXPIRED: End = { reason: 'expired' }
/** So many leases and claims are remembered at least; what is forgotten is read again. */
const REMEMBERED = 50_000

/** A lease as this process knows it. */
export interface KnownLease {
  readonly lease: LeaseId
  readonly id: string
  /** The etcd lease that it is. */
  readonly number: number
  readonly born: number
  record: LeaseRecord
  /** The revision at which its record was last written: a claim is added only if it is still so. */
  changed: number
  /** When it was last renewed, as far as is known, on this process's clock. */
  renewedAt: number
  /** When its life ends on this process's clock, where it was this process that set it. */
  endOfLife: number | undefined
  /** Its claims that were made here, by their names in etcd. */
  readonly claims: Map<string, { readonly key: Key; readonly token: Token }>
}

export function spanOf({ ttl, grace }: LeaseRecord): number {
  return ttl + grace
}

/**
 * What this process knows of leases and claims, so that a call that concerns them needs no reading
 * first. None of it is relied upon: each transaction checks that it is still so.
 */
export class Known {
  readonly #api: Api
  readonly #layout: Layout
  readonly #clock: Clock
  readonly #leases = new Recent<LeaseId, KnownLease>(REMEMBERED)
  readonly #claims = new Recent<string, StoredClaim>(REMEMBERED)

  constructor(api: Api, layout: Layout, clock: Clock) {
    this.#api = api
    this.#layout = layout
    this.#clock = clock
  }

  lease(lease: LeaseId): KnownLease | undefined {
    return this.#leases.get(lease)
  }

  /** The lease with this id, or how it ended, as it is in etcd. */
  async look(lease: LeaseId): Promise<KnownLease | { readonly end: End | undefined }> {
    const parts = parseLeaseId(lease)
    if (parts === undefined) return { end: undefined }
    const { id } = parts
    const names = [this.#layout.lease(id), this.#layout.ended(id)]
    const { results } = await this.#api.read(names.map((name) => this.#layout.get(name)))
    return this.judge(lease, results[0]!.kvs[0], results[1]!.kvs[0])
  }

  /** The same, from what was read of its record and of its end. */
  judge(
    lease: LeaseId,
    record: KeyValue | undefined,
    ended: KeyValue | undefined,
  ): KnownLease | { readonly end: End | undefined } {
    const parts = parseLeaseId(lease)
    if (record === undefined || record.created !== parts?.born) {
      return { end: endOf(lease, ended) }
    }
    return this.learn(record)
  }

  /** A lease's record was read or written. */
  learn(kv: KeyValue): KnownLease {
    const id = kv.key.slice(this.#layout.leases.length)
    const lease = leaseIdOf(id, kv.created)
    const record = readLease(kv.value)
    const before = this.lease(lease)
    if (before !== undefined) {
      // What was read before it was last written may be heard of after that.
      if (kv.changed < before.changed) return before
      // What this process has counted was another life, which somebody has cut short.
      if (record.life?.lease !== before.record.life?.lease) before.endOfLife = undefined
      before.record = record
      before.changed = kv.changed
      return before
    }
    const known: KnownLease = {
      ...{ lease, id, number: leaseNumber(id), born: kv.created, record, changed: kv.changed },
      ...{ renewedAt: record.grantedAt, endOfLife: undefined, claims: new Map() },
    }
    this.#leases.set(lease, known)
    return known
  }

  claim(key: Key, token: Token): StoredClaim | undefined {
    return this.#claims.get(`${token} ${key}`)
  }

  claimed(claim: StoredClaim): void {
    this.#claims.set(`${claim.token} ${claim.key}`, claim)
    const { key, token } = claim
    this.lease(claim.leaseId)?.claims.set(this.#layout.claim(key, claim.name), { key, token })
  }

  released(claim: StoredClaim): void {
    this.lease(claim.leaseId)?.claims.delete(this.#layout.claim(claim.key, claim.name))
  }

  renewed(known: KnownLease): void {
    known.renewedAt = Math.max(known.renewedAt, this.#clock.now())
  }

  /**
   * etcd has told in whole seconds how long a lease has left. What is known stays as long as it fits,
   * so that reading twice gives the same; where it does not, somebody else has renewed the lease.
   */
  observed(known: KnownLease, remaining: number, granted: number, slack: number): void {
    const latest = this.#clock.now() - (granted - remaining - 1) * 1000
    const earliest = latest - 1000 - slack
    if (known.renewedAt < earliest) known.renewedAt = latest - 1000
  }

  /** When a claim will be gone unless its lease is renewed, as far as is known. */
  until({ leaseId, claimedAt, span }: StoredClaim): number {
    const known = this.lease(leaseId)
    return known === undefined ? claimedAt + span : untilOf(known)
  }

  /** A claim as others see it. */
  show(claim: StoredClaim, heldSince: number | undefined): Claim {
    const { key, token, leaseId, holder, mode, limit, value, claimedAt } = claim
    return {
      ...{ key, token, lease: leaseId, holder, mode, claimedAt, until: this.until(claim) },
      ...(limit !== undefined && { limit }),
      ...(value !== undefined && { value }),
      ...(heldSince !== undefined && { heldSince }),
    }
  }
}

export function untilOf({ record, renewedAt, endOfLife }: KnownLease): number {
  return Math.min(
    renewedAt + spanOf(record),
    endOfLife ?? Infinity,
    record.life?.endOfLife ?? Infinity,
  )
}

/** How a lease ended that is not there. What nobody has ended has expired. */
export function endOf(lease: LeaseId, ended: KeyValue | undefined): End | undefined {
  if (ended !== undefined) return readEnd(JSON.parse(ended.value))
  return parseLeaseId(lease) === undefined ? undefined : EXPIRED
}
