import {
  CLAIMS_SHOWN,
  type Claim,
  type End,
  holders,
  type Key,
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
import { lineOf, type Place } from './line.ts'
import { BUCKETS, bucketOf, isLeaseId } from './paths.ts'
import type { Picture } from './picture.ts'
import { heldSince } from './plan.ts'
import { decode, endOfLife, keyRecord, type LeaseRecord } from './records.ts'
import type { KeyState, LeaseState, Picked, SurveyedKey } from './tree.ts'
import { branchesIn, claimedIn, dataOf, join, leaseClaim, namesBelow } from './tree.ts'
import type { Look } from './wire/index.ts'

const PAGE_DEFAULT = 1000

/** Which claims of a key are shown. */
type Pick = (state: KeyState) => readonly Place[]
type SeenLease = Omit<LeaseState, 'zxid'>

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
    const top = tree.top(prefix)
    const pick = ({ line, held }: KeyState) => line.slice(0, Math.min(held + 1, CLAIMS_SHOWN))
    const { zxid, value } = await tree.picture((known) => {
      const branches = branchesIn(known, top, after)
      const names = claimedIn(known, branches, after)
      const next = names[limit]
      // Where the page is full, what comes behind it does not matter.
      const near = branches.filter(({ name }) => next === undefined || name <= next)
      const leaves = names.slice(0, limit).flatMap((name) => this.#leavesOf(known, name, pick))
      return { branches: near.map(namesBelow), leaves }
    })
    const names = claimedIn(value, branchesIn(value, top, after), after)
    const keys = names.slice(0, limit).map((name) => this.#keyIn(value, name, pick))
    const claimed = keys.filter(({ line }) => line.length > 0)
    return {
      revision: zxid,
      keys: claimed.map((state) => this.#entry(state)),
      more: names.length > limit,
    }
  }

  async #leaseReading(id: LeaseId, limit: number): Promise<LeaseReading> {
    const { tree } = this.#journal
    if (!isLeaseId(id)) {
      const { zxid } = await tree.look([dataOf(tree.paths.root)])
      return { revision: zxid, lease: undefined, end: undefined, claims: [] }
    }
    const ended = tree.paths.endOf(id)
    const { zxid, value } = await tree.picture((known) => {
      const { keys, pick } = claimsOf(this.#leaseIn(known, id))
      const lines = keys.map((key) => namesBelow({ path: tree.paths.key(key) }))
      const branches = [...this.#leaseLooks(known, id), dataOf(ended), ...lines]
      return { branches, leaves: keys.flatMap((key) => this.#leavesOf(known, key, pick)) }
    })
    const state = this.#leaseIn(value, id)
    const { keys, pick } = claimsOf(state)
    const survey = keys.map((key) => this.#keyIn(value, key, pick))
    const claims = survey.flatMap((each) => each.picked.map((it) => this.claim(each, it)))
    const end = value.data(ended)
    return {
      revision: zxid,
      lease: state && this.#lease(state),
      end: state || !end ? undefined : decode<End>(end.data),
      claims: claims.slice(0, limit),
    }
  }

  /** In the order of buckets, and of names within them. */
  async #leases(after: LeaseId | undefined, limit: number): Promise<LeasesReading> {
    const { tree } = this.#journal
    const isKnown = after !== undefined && isLeaseId(after)
    const first = isKnown ? bucketOf(after) : 0
    const buckets = Array.from({ length: BUCKETS - first }, (_, at) =>
      tree.paths.leaseBucket(first + at),
    )
    const idsIn = (known: Picture) =>
      buckets.flatMap((bucket, at) => {
        const sorted = [...known.children(bucket)].sort()
        return at === 0 && isKnown ? sorted.filter((id) => id > after) : sorted
      })
    const { zxid, value } = await tree.picture((known) => {
      const looks = idsIn(known)
        .slice(0, limit)
        .flatMap((id) => this.#leaseLooks(known, id))
      const isBranch = ({ at }: Look) => at === 'children'
      return {
        branches: [...buckets.map((path) => namesBelow({ path })), ...looks.filter(isBranch)],
        leaves: looks.filter((look) => !isBranch(look)),
      }
    })
    const ids = idsIn(value)
    const page = ids.slice(0, limit).map((id) => this.#leaseIn(value, id))
    return {
      revision: zxid,
      leases: page.flatMap((state) => (state ? [this.#lease(state)] : [])),
      more: ids.length > limit,
    }
  }

  /** A key as a picture shows it. */
  #keyIn(known: Picture, key: Key, pick: Pick): SurveyedKey {
    const path = this.#journal.tree.paths.key(key)
    const line = lineIn(known, path)
    const state = { key, node: known.data(path), line, held: holders(line) }
    const wanted = pick(state)
    const nodes = wanted.map(({ name }) => known.data(`${path}/${name}`))
    return join([state], [wanted], nodes)[0]!
  }

  /** What is to be looked at to know a key whose line is known. */
  #leavesOf(known: Picture, key: Key, pick: Pick): Look[] {
    const path = this.#journal.tree.paths.key(key)
    const line = lineIn(known, path)
    const picked = pick({ key, node: undefined, line, held: holders(line) })
    return [dataOf(path), ...picked.map(({ name }) => dataOf(`${path}/${name}`))]
  }

  /** What is to be looked at to know a lease, as far as is known. */
  #leaseLooks(known: Picture, id: LeaseId): Look[] {
    const path = this.#journal.tree.paths.lease(id)
    const claims = known.children(path).filter((name) => name.startsWith('c'))
    return [dataOf(path), namesBelow({ path }), ...claims.map((name) => dataOf(`${path}/${name}`))]
  }

  #leaseIn(known: Picture, id: LeaseId): SeenLease | undefined {
    const path = this.#journal.tree.paths.lease(id)
    const node = known.data(path)
    if (!node) return undefined
    const names = [...known.children(path)].sort()
    return {
      id,
      record: decode<LeaseRecord>(node.data),
      node,
      claims: names.flatMap((name) =>
        name.startsWith('c') ? leaseClaim(name, known.data(`${path}/${name}`)) : [],
      ),
      children: names.flatMap((name) => (name.startsWith('k') ? [name.slice(1)] : [])),
    }
  }

  #lease({ id, record, node, claims, children }: SeenLease): Lease {
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

/** A key's line. A claim that was found to be gone has left since its name was read. */
function lineIn(known: Picture, path: string): Place[] {
  return lineOf(known.children(path)).filter(({ name }) => !known.isGone(`${path}/${name}`))
}

/** On which keys a lease has claims, and which of the claims there are its own. */
function claimsOf(state: SeenLease | undefined) {
  const claims = state?.claims ?? []
  const made = new Set(claims.map(({ claim }) => claim))
  return {
    keys: [...new Set(claims.flatMap(({ keys }) => keys))],
    pick: ({ line }: KeyState) => line.filter((it) => made.has(it.claim)),
  }
}
