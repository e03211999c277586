import type { End, LeaseId } from 'leasehold/port'
import type { ForcedEnd, Holding, LeaseRecord } from './history.js'

/** The known leases, and how claims ended. */
export interface Known {
  readonly leases: ReadonlyMap<LeaseId, LeaseRecord>
  readonly ends: ReadonlyMap<string, End>
  readonly forcedEnds: readonly ForcedEnd[]
}

/** A key that the two must not hold at the same time, if there is one. */
export function contested(one: Holding, other: Holding): string | undefined {
  if (one.shared && other.shared) return undefined
  return one.keys.find((key) => other.keys.includes(key))
}

/**
 * Whether another client ended the holder's claim on this key by force. The holder may not know of it
 * yet. Expiry is no such excuse, and neither is a break with a period as long as the lease would have
 * lived without a renewal: a holder can foresee both. It cannot foresee the end of a parent.
 */
export function takenByForce(
  { client, lease, token }: Holding,
  key: string,
  known: Known,
): boolean {
  const end = known.ends.get(`${key} ${token}`)
  const record = known.leases.get(lease)
  if (!end || !record) return false
  if (record.parent !== undefined) return true
  if (end.reason === 'revoked') return end.by !== client
  if (end.reason !== 'broken') return false
  return known.forcedEnds.some(
    (force) =>
      force.client !== client && concerns(force, record, known) && period(force) < livesOn(record),
  )
}

/** Whether the request ends this lease, or a lease above it. */
export function concerns({ request }: ForcedEnd, record: LeaseRecord, { leases }: Known): boolean {
  const { target } = request
  for (let one: LeaseRecord | undefined = record; one; ) {
    if ('lease' in target && target.lease === one.lease) return true
    if ('parent' in target && target.parent === one.parent) return true
    one = one.parent === undefined ? undefined : leases.get(one.parent)
  }
  return false
}

export function period({ request }: ForcedEnd): number {
  return request.after ?? 0
}

/** How long a lease lives without a renewal. */
export function livesOn({ ttl, grace }: LeaseRecord): number {
  return ttl + grace
}

/** The lease and those above it, as far as they are known. */
export function ancestry(record: LeaseRecord, { leases }: Pick<Known, 'leases'>): LeaseRecord[] {
  const found = [record]
  for (let parent = record.parent; parent !== undefined; parent = found.at(-1)!.parent) {
    const above = leases.get(parent)
    if (!above) break
    found.push(above)
  }
  return found
}
