import { type Event, isLeaseholdError, type Refusal } from '../../port/index.ts'
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
 * that made them, revisions are left out, as are fields that are undefined, and lists that have
 * no order get one. Without `exact`, times are left out too.
 */
export function plain(value: unknown, names: Names, exact: boolean): unknown {
  if (Array.isArray(value)) return value.map((each) => plain(each, names, exact))
  if (typeof value === 'string') return plainText(value, names)
  if (typeof value !== 'object' || value === null) return value
  const fields: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(value)) {
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
