import {
  type Ahead,
  CLAIMS_SHOWN,
  type Claim,
  checkQuery,
  type KeyEntry,
  type Lease,
  type Query,
  type Reading,
} from '../port/index.ts'
import type { Ledger } from './ledger.ts'
import type { Refused } from './outputs/index.ts'
import { endOf } from './refusals.ts'
import { NONE, slotOf } from './tables/index.ts'

const PAGE_DEFAULT = 1000

/** Reads the kernel's state into objects. Changes nothing. */
export class Reader {
  readonly #ledger: Ledger

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  read<Q extends Query>(query: Q): Reading<Q> | Refused {
    const complaint = checkQuery(query, this.#ledger.limits)
    if (complaint) return { outcome: 'refused', refusal: complaint }
    return this.#read(query) as Reading<Q>
  }

  /** The `count` claims before a position in a key's queue. */
  ahead(key: number, count: number): Ahead {
    const { keys } = this.#ledger.tables
    return { key: keys.name.get(key)!, count, first: this.claim(keys.first.get(key)) }
  }

  claim(claim: number): Claim {
    const { claims, keys, leases } = this.#ledger.tables
    const lease = claims.lease.get(claim)
    return {
      key: keys.name.get(claims.key.get(claim))!,
      token: claims.token.get(claim),
      lease: leases.id(lease),
      holder: leases.holder.get(lease)!,
      mode: claims.mode(claim),
      limit: claims.limit(claim) || undefined,
      value: claims.value.get(claim),
      claimedAt: claims.claimedAt.get(claim),
      heldSince: claims.heldSince.get(claim) || undefined,
      until: leases.deadline(lease),
    }
  }

  lease(slot: number): Lease {
    const { leases } = this.#ledger.tables
    const parent = leases.parent.get(slot)
    return {
      id: leases.id(slot),
      holder: leases.holder.get(slot)!,
      ttl: leases.ttl.get(slot),
      grace: leases.grace.get(slot),
      labels: leases.labels.get(slot) ?? {},
      parent: parent === NONE ? undefined : leases.id(parent),
      grantedAt: leases.grantedAt.get(slot),
      renewedAt: leases.renewedAt.get(slot),
      until: leases.deadline(slot),
      endOfLife: leases.endOfLife.get(slot),
      claims: leases.claims.get(slot),
      children: leases.children.get(slot),
    }
  }

  #read(query: Query): Reading {
    const { revision, tables, tenures } = this.#ledger
    if ('key' in query) {
      const key = tables.keys.find(query.key)
      if (key === NONE) return { revision, claims: [], holders: 0, count: 0 }
      const { key: _, ...rest } = this.#entry(key, query.limit ?? PAGE_DEFAULT)
      return { revision, ...rest }
    }
    if ('prefix' in query) return this.#prefix(query.prefix, query.after, query.limit)
    if ('lease' in query) return this.#leaseReading(query.lease, query.limit ?? PAGE_DEFAULT)
    if ('leases' in query) return this.#leases(query.after, query.limit ?? PAGE_DEFAULT)
    const key = tables.keys.find(query.history)
    return { revision, tenures: key === NONE ? [] : tenures.of(key) }
  }

  #entry(key: number, most: number): KeyEntry {
    const { keys, claims } = this.#ledger.tables
    const shown: Claim[] = []
    let claim = keys.first.get(key)
    for (; claim !== NONE && shown.length < most; claim = claims.nextOnKey.get(claim)) {
      shown.push(this.claim(claim))
    }
    const [holders, count] = [keys.held.get(key), keys.count.get(key)]
    return { key: keys.name.get(key)!, claims: shown, holders, count }
  }

  #prefix(prefix: string, after: string | undefined, limit = PAGE_DEFAULT): Reading {
    const { keys } = this.#ledger.tables
    const entries: KeyEntry[] = []
    let more = false
    for (const key of keys.ordered.claimedUnder(prefix, after)) {
      if (entries.length === limit) {
        more = true
        break
      }
      entries.push(this.#entry(key, Math.min(keys.held.get(key) + 1, CLAIMS_SHOWN)))
    }
    return { revision: this.#ledger.revision, keys: entries, more }
  }

  #leaseReading(id: string, most: number): Reading {
    const { revision, tables } = this.#ledger
    const { leases, claims } = tables
    const slot = leases.find(id)
    if (slot === NONE)
      return { revision, lease: undefined, end: endOf(this.#ledger, id), claims: [] }
    const own: Claim[] = []
    let claim = leases.firstClaim.get(slot)
    for (; claim !== NONE && own.length < most; claim = claims.nextOfLease.get(claim)) {
      own.push(this.claim(claim))
    }
    return { revision, lease: this.lease(slot), end: undefined, claims: own }
  }

  /** In slot order. A page continues after the slot of the last lease of the previous page. */
  #leases(after: string | undefined, most: number): Reading {
    const { leases } = this.#ledger.tables
    const page: Lease[] = []
    let more = false
    for (let slot = after === undefined ? 0 : slotOf(after) + 1; slot < leases.slots.end; slot++) {
      if (leases.born.get(slot) === 0) continue
      more = page.length === most
      if (more) break
      page.push(this.lease(slot))
    }
    return { revision: this.#ledger.revision, leases: page, more }
  }
}
