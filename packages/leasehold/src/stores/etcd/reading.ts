import {
  CLAIMS_SHOWN,
  type Claim,
  type HistoryReading,
  holders,
  type Key,
  type KeyEntry,
  type KeyReading,
  type Lease,
  type LeaseId,
  type LeaseReading,
  type LeasesReading,
  type PrefixReading,
  type Query,
  type Reading,
} from '../../port/index.ts'
import type { Context } from './context.ts'
import { endings, heldSince, tenuresOf } from './history.ts'
import { endOf, type KnownLease, untilOf } from './known.ts'
import { parseClaimName, parseLeaseId, prefixEnd, type StoredClaim, storedClaim } from './layout.ts'
import { nameOf } from './lines.ts'
import type { KeyValue, RangeOp, Result } from './messages.ts'

const PAGE_DEFAULT = 1000
/** So much is read of a prefix at once. */
const CHUNK = 1000
/** Of so many leases etcd is asked at once how long they have left. */
const ASKED_AT_ONCE = 32
/** Of so many leases at most it is asked where claims are read. */
const ASKED_MOST = 64

export async function read(context: Context, query: Query): Promise<Reading> {
  if ('key' in query) return readKey(context, query.key, query.limit ?? PAGE_DEFAULT)
  if ('prefix' in query) {
    return readPrefix(context, query.prefix, query.after, query.limit ?? PAGE_DEFAULT)
  }
  if ('lease' in query) return readLease(context, query.lease, query.limit ?? PAGE_DEFAULT)
  if ('leases' in query) return readLeases(context, query.after, query.limit ?? PAGE_DEFAULT)
  return readHistory(context, query.history)
}

async function readKey(context: Context, key: Key, most: number): Promise<KeyReading> {
  const { api, layout } = context
  const { revision, results } = await api.read([
    layout.lineNames(key),
    { do: 'range', ...layout.line(key), byCreation: true, limit: most },
    layout.get(layout.lastEnd(key)),
  ])
  const [names, shown, note] = results as [Result, Result, Result]
  const held = holders(names.kvs.map(({ key: name }) => parseClaimName(nameOf(name))))
  const stored = shown.kvs.map((kv) => storedClaim(layout, kv))
  await askTimes(context, stored)
  const claims = await showClaims(context, key, stored, held, note.kvs[0])
  return { revision, claims, holders: held, count: names.kvs.length }
}

/** The first claims of a line; the first `held` of them hold. */
async function showClaims(
  context: Context,
  key: Key,
  claims: readonly StoredClaim[],
  held: number,
  note: KeyValue | undefined,
): Promise<Claim[]> {
  const { known } = context
  const oldest = claims[0]?.token ?? 0
  // Where nothing has ended on the key since the first was claimed, all have held from the start.
  const isOld = held === 0 || note === undefined || note.changed < oldest
  const chain = isOld ? [] : await endings(context, key, note, CLAIMS_SHOWN, oldest)
  return claims.map((claim, at) =>
    known.show(claim, at < held ? heldSince(chain, claim) : undefined),
  )
}

// long because a key's claims are one run of names, of which only the next name shows the end.
async function readPrefix(
  context: Context,
  prefix: string,
  after: Key | undefined,
  most: number,
): Promise<PrefixReading> {
  const { api, layout } = context
  const { key: first, end } = layout.under(prefix)
  const start = after === undefined ? first : layout.after(after)
  let from: string | undefined = after === undefined || start > first ? start : first
  let revision = 0
  const found: { key: Key; claims: StoredClaim[]; note: KeyValue | undefined }[] = []
  while (from !== undefined && found.filter(isClaimed).length <= most + 1) {
    const range: RangeOp = { do: 'range', key: from, end, limit: CHUNK, revision }
    const answer = await api.read([range])
    revision ||= answer.revision
    const { kvs, more } = answer.results[0]!
    for (const kv of kvs) {
      const { key, claim } = layout.parse(kv.key)
      let entry = found.at(-1)
      if (entry?.key !== key) {
        entry = { key, claims: [], note: undefined }
        found.push(entry)
      }
      if (claim) entry.claims.push(storedClaim(layout, kv))
      else entry.note = kv
    }
    from = more ? `${kvs.at(-1)!.key}\u0000` : undefined
  }
  const claimed = found.filter(isClaimed)
  const page = claimed.slice(0, most)
  for (const { claims } of page) claims.sort((one, other) => one.token - other.token)
  await askTimes(
    context,
    page.flatMap(({ claims }) => claims.slice(0, CLAIMS_SHOWN)),
  )
  const keys = await Promise.all(page.map((entry) => keyEntry(context, entry)))
  return { revision, keys, more: claimed.length > most }
}

function isClaimed({ claims }: { readonly claims: readonly unknown[] }): boolean {
  return claims.length > 0
}

async function keyEntry(
  context: Context,
  { key, claims, note }: { key: Key; claims: readonly StoredClaim[]; note: KeyValue | undefined },
): Promise<KeyEntry> {
  const held = holders(claims)
  const shown = claims.slice(0, Math.min(held + 1, CLAIMS_SHOWN))
  const each = await showClaims(context, key, shown, held, note)
  return { key, claims: each, holders: held, count: claims.length }
}

async function readLease(context: Context, lease: LeaseId, most: number): Promise<LeaseReading> {
  const { api, layout, known } = context
  const id = parseLeaseId(lease)?.id ?? ''
  const about = [layout.get(layout.lease(id)), layout.get(layout.ended(id))]
  const { revision, results: first } = await api.read(about)
  const found = known.judge(lease, first[0]!.kvs[0], first[1]!.kvs[0])
  const tied = 'id' in found ? await api.timeToLive(found.number, true) : undefined
  if (!('id' in found) || found.record.ending || tied === undefined) {
    const end = 'end' in found ? found.end : (found.record.ending ?? endOf(lease, undefined))
    return { revision, lease: undefined, end, claims: [] }
  }
  // The revision came first and the names after it: none is missing that was there by then.
  const names = tied.keys.filter((name) => layout.isClaim(name)).sort()
  const { results } = await api.read(
    names.flatMap((name): RangeOp[] => {
      const { key } = layout.parse(name)
      const note = layout.get(layout.lastEnd(key), revision)
      return [layout.get(name, revision), layout.lineNames(key, undefined, revision), note]
    }),
  )
  known.observed(found, tied.remaining, tied.granted, SLACK_MS)
  const claims: Claim[] = []
  let count = 0
  for (let at = 0; at < names.length; at++) {
    const [own, line, note] = results.slice(3 * at, 3 * at + 3) as [Result, Result, Result]
    if (own.kvs[0] === undefined || count++ >= most) continue
    const claim = storedClaim(layout, own.kvs[0])
    const held = holders(line.kvs.map(({ key }) => parseClaimName(nameOf(key))))
    const index = line.kvs.findIndex(({ key }) => key === own.kvs[0]!.key)
    claims.push(
      ...(await showClaims(context, claim.key, [claim], index < held ? 1 : 0, note.kvs[0])),
    )
  }
  return { revision, lease: showLease(found, count), end: undefined, claims }
}

function showLease(known: KnownLease, claims: number): Lease {
  const { holder, ttl, grace, labels, grantedAt, life } = known.record
  return {
    ...{ id: known.lease, holder, ttl, grace, labels, parent: undefined, grantedAt },
    ...{ renewedAt: known.renewedAt, until: untilOf(known) },
    endOfLife: life?.endOfLife ?? Infinity,
    ...{ claims, children: 0 },
  }
}

async function readLeases(
  context: Context,
  after: LeaseId | undefined,
  most: number,
): Promise<LeasesReading> {
  const { api, layout, known } = context
  const last = after === undefined ? undefined : parseLeaseId(after)?.id
  // What stands beside a record has a slash after its name, and comes before a digit.
  let from: string | undefined = last === undefined ? layout.leases : `${layout.lease(last)}0`
  const end = prefixEnd(layout.leases)
  let revision = 0
  const records: KeyValue[] = []
  while (from !== undefined && records.length <= most) {
    const answer = await api.read([{ do: 'range', key: from, end, limit: most + 1, revision }])
    revision ||= answer.revision
    const { kvs, more } = answer.results[0]!
    records.push(...kvs.filter(({ key }) => layout.isRecord(key)))
    from = more ? `${kvs.at(-1)!.key}\u0000` : undefined
  }
  const page = records.slice(0, most).map((kv) => known.learn(kv))
  const leases = await inGroups(page, async (lease) => {
    const claims = await askTime(context, lease)
    return showLease(lease, claims)
  })
  return { revision, leases, more: records.length > most }
}

async function readHistory(context: Context, key: Key): Promise<HistoryReading> {
  const { api, layout, limits } = context
  const { revision, results } = await api.read([layout.get(layout.lastEnd(key))])
  const chain = await endings(context, key, results[0]!.kvs[0], 4 * limits.historyPerKey, 0)
  return { revision, tenures: tenuresOf(chain).slice(0, limits.historyPerKey) }
}

/** How late an answer may be without its time being taken for another. */
const SLACK_MS = 1000

/** Asks etcd how long a lease has left, and with it how many claims are tied to it. */
async function askTime({ api, layout, known }: Context, lease: KnownLease): Promise<number> {
  const tied = await api.timeToLive(lease.number, true)
  if (tied === undefined) return 0
  known.observed(lease, tied.remaining, tied.granted, SLACK_MS)
  return tied.keys.filter((name) => layout.isClaim(name)).length
}

/** Learns the deadlines of the leases behind these claims, as far as there are not too many. */
async function askTimes(context: Context, claims: readonly StoredClaim[]): Promise<void> {
  const { api, layout, known } = context
  const ids = [...new Set(claims.map(({ leaseId }) => leaseId))].slice(0, ASKED_MOST)
  const strange = ids.filter((lease) => known.lease(lease) === undefined)
  if (strange.length > 0) {
    const records = strange.map((lease) => layout.get(layout.lease(parseLeaseId(lease)!.id)))
    const { results } = await api.read(records)
    for (const kv of results.flatMap(({ kvs }) => kvs)) known.learn(kv)
  }
  await inGroups(ids, async (id) => {
    const lease = known.lease(id)
    if (lease !== undefined && lease.record.ttl !== Infinity) await askTime(context, lease)
  })
}

async function inGroups<T, R>(list: readonly T[], work: (each: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let at = 0; at < list.length; at += ASKED_AT_ONCE) {
    results.push(...(await Promise.all(list.slice(at, at + ASKED_AT_ONCE).map(work))))
  }
  return results
}
