import {
  type Event,
  isLeaseholdError,
  type Key,
  type LeaseId,
  type Notice,
  type Refusal,
  type Revision,
  type Tenure,
} from '../../port/index.ts'
import type { Names } from './calls.ts'

/** Fields that are times, and fields that count a store's changes. */
const TIMES = new Set([
  'at',
  'claimedAt',
  'heldSince',
  'until',
  'grantedAt',
  'renewedAt',
  'endOfLife',
  'endedAt',
  'remaining',
])
const REVISIONS = new Set(['revision', 'oldest'])

/**
 * An answer without what may differ between two stores: ids and tokens become the numbers of the calls
 * that made them; revisions and undefined fields are left out; unordered fields and lists are
 * sorted. Without `exact`, times are left out, too.
 */
export function normalize(value: unknown, names: Names, exact: boolean): unknown {
  if (Array.isArray(value)) return value.map((each) => normalize(each, names, exact))
  if (typeof value === 'string') return normalizeString(value, names)
  if (typeof value !== 'object' || value === null) return value
  const fields: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(value).sort(byName)) {
    if (field === undefined || REVISIONS.has(name)) continue
    if (TIMES.has(name)) {
      // Two clocks that were moved alike may differ by rounding.
      if (exact) fields[name] = Math.round((field as number) * 1000) / 1000
    } else if (name === 'token') {
      fields[name] = normalizeToken(value as Tokened, names)
    } else {
      fields[name] = normalize(field, names, exact)
    }
  }
  return fields
}

/** A store may keep labels in any order. */
function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

/** The refusal of a call. The wording is each store's own. */
export function normalizeRefusal(error: unknown, names: Names): unknown {
  if (!isLeaseholdError(error)) throw error
  const { code, reason, by, why } = error
  return normalize({ code, end: reason && { reason, by, why } }, names, false)
}

export function normalizeKernelRefusal({ code, end }: Refusal, names: Names): unknown {
  return normalize({ code, end }, names, false)
}

/**
 * Events in groups that happened together, in order. Leases that expire at one moment may do so in any
 * order, and together or one by one: such groups become one. A claim that ends at that moment, too,
 * may have held before or not.
 */
export function normalizeEvents(events: readonly Event[], names: Names, exact: boolean): unknown[] {
  const groups: { mark: string; events: Event[] }[] = []
  for (const event of events) {
    const expired = event.end?.reason === 'expired' || event.end?.reason === 'broken'
    const mark = expired ? `expired at ${event.at}` : `revision ${event.revision}`
    let group = groups.at(-1)
    // What a claim holds after an expiry, it holds in the revision of the expiry.
    const isSame = group?.mark === mark || group?.events.at(-1)?.revision === event.revision
    if (!group || !isSame) {
      group = { mark, events: [] }
      groups.push(group)
    }
    group.events.push(event)
  }
  return groups.map((group) => {
    const shown = group.mark.startsWith('expired') ? withoutMoments(group.events) : group.events
    return shown.map((event) => JSON.stringify(normalize(event, names, exact))).sort()
  })
}

/** Without `held` of claims that are removed in the same group. */
function withoutMoments(events: readonly Event[]): Event[] {
  const claim = ({ key, token }: Event) => `${key} ${token}`
  const removed = new Set(events.filter(({ type }) => type === 'removed').map(claim))
  return events.filter((event) => event.type !== 'held' || !removed.has(claim(event)))
}

/**
 * The notices of a lease's watch in groups that happened together, in order. If time is moved
 * (`exact`), leases that expire at one moment may do so in any order. So the notices that their
 * claims hold may come in any order, too, and not at all for one that ends with the others.
 */
export function normalizeNotices(
  notices: readonly Notice[],
  lease: LeaseId,
  names: Names,
  exact: boolean,
): unknown[] {
  const groups: { mark: unknown; notices: string[] }[] = []
  for (const notice of notices) {
    const mark = exact && notice.type === 'holds' ? 'holds' : markOf(notice)
    if (exact && notice.type === 'gone' && groups.at(-1)?.mark === 'holds') groups.pop()
    let group = groups.at(-1)
    if (mark === undefined || group?.mark !== mark) {
      group = { mark, notices: [] }
      groups.push(group)
    }
    group.notices.push(JSON.stringify(normalizeNotice(notice, lease, names, exact)))
  }
  return groups.map((group) => group.notices.sort())
}

/** Notices of one revision happened together. The others are separate. */
function markOf(notice: Notice): Revision | undefined {
  return notice.type === 'holds' || notice.type === 'removed' ? notice.revision : undefined
}

function normalizeNotice(notice: Notice, lease: LeaseId, names: Names, exact: boolean): unknown {
  if (notice.type !== 'standing') return normalize({ ...notice, lease }, names, exact)
  const claims = notice.claims.map((claim) => normalize({ ...claim, lease }, names, exact))
  return { type: notice.type, claims: sorted(claims) }
}

/** Latest first. Those that were ended together by force have no order. */
export function normalizeTenures(
  tenures: readonly Tenure[],
  key: Key | undefined,
  names: Names,
  exact: boolean,
): unknown[] {
  const groups: { isForced: boolean; tenures: string[] }[] = []
  for (const tenure of tenures) {
    const isForced = tenure.end.reason !== 'released'
    let group = groups.at(-1)
    if (!isForced || !group?.isForced) {
      group = { isForced, tenures: [] }
      groups.push(group)
    }
    group.tenures.push(JSON.stringify(normalize({ ...tenure, key }, names, exact)))
  }
  return groups.map((group) => group.tenures.sort())
}

/** Claims and leases in lists without a meaningful order. */
export function sorted(list: unknown): unknown[] {
  return (list as unknown[]).map((each) => JSON.stringify(each)).sort()
}

function normalizeString(text: string, names: Names): string {
  const lease = names.leases.indexOf(text)
  if (lease >= 0) return `lease ${lease}`
  return text.startsWith(names.prefix) ? text.slice(names.prefix.length) : text
}

interface Tokened {
  readonly token: number
  readonly key?: string
  readonly lease?: string
}

/** A token is unique only on its key: the fields next to it tell which claim is meant. */
function normalizeToken({ token, key, lease }: Tokened, names: Names): string {
  if (token === 0) return 'none'
  const claim = names.claims.findLastIndex(
    (made) =>
      made.token === token &&
      (key === undefined || made.keys.includes(key)) &&
      (lease === undefined || made.lease === lease),
  )
  return claim >= 0 ? `claim ${claim}` : 'unknown'
}
