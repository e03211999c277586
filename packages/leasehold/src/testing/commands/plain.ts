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

/** Fields that are times, and those that count a store's changes. */
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
 * An answer without what two stores may differ in: ids and tokens become the numbers of the calls
 * that made them, revisions are left out, as are fields that are undefined, and fields and lists that
 * have no order get one. Without `exact`, times are left out too.
 */
export function plain(value: unknown, names: Names, exact: boolean): unknown {
  if (Array.isArray(value)) return value.map((each) => plain(each, names, exact))
  if (typeof value === 'string') return plainText(value, names)
  if (typeof value !== 'object' || value === null) return value
  const fields: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(value).sort(byName)) {
    if (field === undefined || REVISIONS.has(name)) continue
    if (TIMES.has(name)) {
      // Two clocks that were moved alike may differ by what adding fractions loses.
      if (exact) fields[name] = Math.round((field as number) * 1000) / 1000
    } else if (name === 'token') {
      fields[name] = plainToken(value as Tokened, names)
    } else {
      fields[name] = plain(field, names, exact)
    }
  }
  return fields
}

/** A store may keep labels in any order. */
function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

/** What a call was refused with. The wording is each store's own. */
export function plainRefusal(error: unknown, names: Names): unknown {
  if (!isLeaseholdError(error)) throw error
  const { code, reason, by, why } = error
  return plain({ code, end: reason && { reason, by, why } }, names, false)
}

export function plainKernelRefusal({ code, end }: Refusal, names: Names): unknown {
  return plain({ code, end }, names, false)
}

/**
 * Events as the groups that happened together, in order. Leases that expire at one moment may do so
 * in any order, and together or one by one: such groups become one.
 */
export function plainEvents(events: readonly Event[], names: Names, exact: boolean): unknown[] {
  const groups: { mark: string; events: string[] }[] = []
  for (const event of events) {
    const expired = event.end?.reason === 'expired' || event.end?.reason === 'broken'
    const mark = expired ? `expired at ${event.at}` : `revision ${event.revision}`
    let group = groups.at(-1)
    if (group?.mark !== mark) {
      group = { mark, events: [] }
      groups.push(group)
    }
    group.events.push(JSON.stringify(plain(event, names, exact)))
  }
  return groups.map((group) => group.events.sort())
}

/**
 * The notices of a lease's watch as the groups that happened together, in order. Where time is moved
 * (`exact`), leases that expire at one moment may do so in any order: so what one of them came to
 * hold may be told in any order too, and not at all to one that ends with the others.
 */
export function plainNotices(
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
    group.notices.push(JSON.stringify(plainNotice(notice, lease, names, exact)))
  }
  return groups.map((group) => group.notices.sort())
}

/** Notices of one revision happened together. The others stand for themselves. */
function markOf(notice: Notice): Revision | undefined {
  return notice.type === 'holds' || notice.type === 'removed' ? notice.revision : undefined
}

function plainNotice(notice: Notice, lease: LeaseId, names: Names, exact: boolean): unknown {
  if (notice.type !== 'standing') return plain({ ...notice, lease }, names, exact)
  const claims = notice.claims.map((claim) => plain({ ...claim, lease }, names, exact))
  return { type: notice.type, claims: sorted(claims) }
}

/** The latest first. Those that were ended by force together have no order among them. */
export function plainTenures(
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
    group.tenures.push(JSON.stringify(plain({ ...tenure, key }, names, exact)))
  }
  return groups.map((group) => group.tenures.sort())
}

/** Claims and leases in lists whose order means nothing. */
export function sorted(list: unknown): unknown[] {
  return (list as unknown[]).map((each) => JSON.stringify(each)).sort()
}

function plainText(text: string, names: Names): string {
  const lease = names.leases.indexOf(text)
  if (lease >= 0) return `lease ${lease}`
  return text.startsWith(names.prefix) ? text.slice(names.prefix.length) : text
}

interface Tokened {
  readonly token: number
  readonly key?: string
  readonly lease?: string
}

/** A token is unique on its key only: what stands beside it tells which claim is meant. */
function plainToken({ token, key, lease }: Tokened, names: Names): string {
  if (token === 0) return 'none'
  const claim = names.claims.findLastIndex(
    (made) =>
      made.token === token &&
      (key === undefined || made.keys.includes(key)) &&
      (lease === undefined || made.lease === lease),
  )
  return claim >= 0 ? `claim ${claim}` : 'unknown'
}
