import {
  CLAIMS_SHOWN,
  type Claim,
  type KeyEntry,
  type Lease,
  type LeaseId,
  type LeaseReading,
  type LeasesReading,
  type PrefixReading,
  type Query,
  type Reading,
} from '../../port/index.ts'
import type { Journal } from './journal.ts'
import { type Lessor, spanOf } from './lessor.ts'
import { BUCKETS, bucketOf, isLeaseId } from './paths.ts'
import { heldSince } from './plan.ts'
import { endOfLife, keyRecord } from './records.ts'
import type { KeyState, LeaseState, Picked, SurveyedKey } from './tree.ts'

const PAGE_DEFAULT = 1000

/** Makes of nodes what others see. */
export class Readings {
  readonly #journal: Journal
  readonly #lessor: Lessor

  constructor(journal: Journal, lessor: Lessor) {
    this.#journal = journal
    this.#lessor = lessor
  }

  async read(query: Query): Promise<Reading> {
    await this.#journal.tree.catchUp()
    if ('key' in query) return this.#key(query.key, query.limit ?? PAGE_DEFAULT)
    if ('prefix' in query) return this.#prefix(query.prefix, query.after, query.limit)
    if ('lease' in query) return this.#leaseReading(query.lease, query.limit ?? PAGE_DEFAULT)
    if ('leases' in query) return this.#leases(query.after, query.limit ?? PAGE_DEFAULT)
    const { tree } = this.#journal
    const { zxid, value } = await tree.look([{ at: 'data', path: tree.paths.key(query.history) }])
    return { revision: zxid, tenures: keyRecord(value[0]?.data).tenures }
  }

  /** A claim as others see it. When it ends is known only of leases that are kept here. */
  claim(state: KeyState, { place, index, token, claimedAt, record }: Picked): Claim {
    const { holder, value, span } = record
    const kept = this.#lessor.get(place.lease)
    return {
      key: state.key,
      token,
      lease: place.lease,
      holder,
      mode: place.mode,
      // Left out where there is none: an answer that is remembered must come back the same.
      ...(place.limit !== undefined && { limit: place.limit }),
      ...(value !== undefined && { value }),
      claimedAt,
      ...(index < state.held && { heldSince: heldSince(state, place.mode, claimedAt) }),
      until: kept ? this.#lessor.deadline(kept) : this.#journal.clock.now() + span,
    }
  }

  async #key(key: string, limit: number): Promise<Reading<{ key: string }>> {
    const { zxid, keys } = await this.#journal.tree.survey([key], ({ line }) =>
      line.slice(0, limit),
    )
    const { key: _, ...entry } = this.#entry(keys[0]!)
    return { revision: zxid, ...entry }
  }

  #entry(state: SurveyedKey): KeyEntry {
    return {
      key: state.key,
      claims: state.picked.map((picked) => this.claim(state, picked)),
      holders: state.held,
      count: state.line.length,
    }
  }

  async #prefix(
    prefix: string,
    after: string | undefined,
    limit = PAGE_DEFAULT,
  ): Promise<PrefixReading> {
    const { tree } = this.#journal
    const names = await tree.keysUnder(prefix)
    const rest = after === undefined ? names : names.filter((name) => name > after)
    const { zxid, keys } = await tree.survey(rest.slice(0, limit), ({ line, held }) =>
      line.slice(0, Math.min(held + 1, CLAIMS_SHOWN)),
    )
    const claimed = keys.filter(({ line }) => line.length > 0)
    return {
      revision: zxid,
      keys: claimed.map((state) => this.#entry(state)),
      more: rest.length > limit,
    }
  }

  async #leaseReading(id: LeaseId, limit: number): Promise<LeaseReading> {
    const { tree } = this.#journal
    const state = await tree.lease(id)
    if (!state) {
      const { zxid } = await tree.look([{ at: 'data', path: tree.paths.root }])
      return { revision: zxid, lease: undefined, end: await tree.endOf(id), claims: [] }
    }
    const made = new Set(state.claims.map(({ claim }) => claim))
    const keys = [...new Set(state.claims.flatMap((claim) => claim.keys))]
    const survey = await tree.survey(keys, ({ line }) => line.filter((it) => made.has(it.claim)))
    const claims = survey.keys.flatMap((each) => each.picked.map((it) => this.claim(each, it)))
    return {
      revision: keys.length > 0 ? survey.zxid : state.zxid,
      lease: this.#lease(state),
      end: undefined,
      claims: claims.slice(0, limit),
    }
  }

  /** In the order of buckets, and of names within them. */
  async #leases(after: LeaseId | undefined, limit: number): Promise<LeasesReading> {
    const { tree } = this.#journal
    const isKnown = after !== undefined && isLeaseId(after)
    const first = isKnown ? bucketOf(after) : 0
    const buckets = Array.from({ length: BUCKETS - first }, (_, at) => first + at)
    const { zxid, value } = await tree.look(
      buckets.map((bucket) => ({ at: 'children', path: tree.paths.leaseBucket(bucket) })),
    )
    const ids = value.flatMap(({ children = [] }, at) => {
      const sorted = children.sort()
      return at === 0 && isKnown ? sorted.filter((id) => id > after) : sorted
    })
    const page = await Promise.all(ids.slice(0, limit).map((id) => tree.lease(id)))
    return {
      revision: zxid,
      leases: page.flatMap((state) => (state ? [this.#lease(state)] : [])),
      more: ids.length > limit,
    }
  }

  #lease({ id, record, node, claims, children }: LeaseState): Lease {
    const kept = this.#lessor.get(id)
    const { holder, ttl, grace, labels = {}, parent } = record
    const common = { id, holder, ttl, grace, labels, parent }
    const counts = {
      claims: claims.reduce((sum, { keys }) => sum + keys.length, 0),
      children: children.length,
    }
    if (kept) {
      const { grantedAt, renewedAt } = kept
      const until = this.#lessor.deadline(kept)
      return { ...common, grantedAt, renewedAt, until, endOfLife: kept.endOfLife, ...counts }
    }
    const { ctime } = node.stat
    const now = this.#journal.clock.now()
    const last = endOfLife(record, node.stat)
    const until = Math.min(now + spanOf(record), last)
    return { ...common, grantedAt: ctime, renewedAt: ctime, until, endOfLife: last, ...counts }
  }
}
