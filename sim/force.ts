import type { End, LeaseId } from 'leasehold/port'
import type { Force, Holding, LeaseRecord } from './history.js'

/** What is known of leases and of how claims ended. */
export interface Known {
  readonly leases: ReadonlyMap<LeaseId, LeaseRecord>
  readonly ends: ReadonlyMap<string, End>
  readonly forces: readonly Force[]
}

/** The key that two holders must not have at once, if there is one. */
export function contested(one: Holding, other: Holding): string | undefined {
  if (one.shared && other.shared) return undefined
  return one.keys.find((key) => other.keys.includes(key))
}

/**
 * Whether the holder's claim on this key was taken by somebody else's force, so that the holder may
 * not know of it yet. Expiry gives no such excuse, and neither does a break whose period is as long
 * as the lease would have lived without a renewal: both can be foreseen. The end of a parent cannot.
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
  return known.forces.some(
    (force) =>
      force.client !== client && concerns(force, record, known) && period(force) < livesOn(record),
  )
}

/** Whether leases were to be ended, and this one is among them or below one of them. */
export function concerns({ request }: Force, record: LeaseRecord, { leases }: Known): boolean {
  const { target } = request
  for (let one: LeaseRecord | undefined = record; one; ) {
    if ('lease' in target && target.lease === one.lease) return true
    if ('parent' in target && target.parent === one.parent) return true
    one = one.parent === undefined ? undefined : leases.get(one.parent)
  }
  return false
}

export function period({ request }: Force): number {
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
