import { count } from '../format.ts'
import type { LeaseRow, Mirror } from '../mirror.ts'

/** A lease with the leases under it. */
export interface Branch {
  readonly id: string
  readonly row: LeaseRow | undefined
  readonly under: readonly Branch[]
}

/** Deeper leases are not shown. */
const DEPTH_MAX = 8

/** A name for a lease, from its labels or else from its keys. */
export function leaseName(row: LeaseRow | undefined): string {
  if (row === undefined) return 'unknown lease'
  const { service, instance, node, drains } = row.detail?.labels ?? {}
  if (service !== undefined && instance !== undefined) return `instance ${service}/${instance}`
  if (node !== undefined) return `machine ${node}`
  if (drains !== undefined) return `drain of ${drains}`
  const [first, ...others] = [...row.keys].sort()
  if (first === undefined) return 'lease without keys'
  return others.length === 0
    ? `lease on ${first}`
    : `lease on ${first} and ${count(others.length)} more`
}

/** A lease and all leases under it, of any holder. */
export function leaseTree(mirror: Mirror, id: string, depth = 0): Branch {
  const children = depth < DEPTH_MAX ? mirror.childrenOf(id) : []
  const under = children.map((child) => leaseTree(mirror, child, depth + 1))
  return { id, row: mirror.leases.get(id), under }
}

/**
 * The leases of a holder as trees: at most `most` of them, and how many exist. `without` leaves out
 * the tree of one lease.
 */
export function leaseTreesOf(
  mirror: Mirror,
  holder: string,
  most: number,
  without?: string,
): { readonly trees: readonly Branch[]; readonly count: number } {
  const own = mirror.holders.get(holder) ?? new Set<string>()
  const isBelow = (id: string) => own.has(mirror.leases.get(id)?.detail?.parent ?? '')
  const roots = [...own].filter((id) => id !== without && !isBelow(id))
  const trees = roots.slice(0, most).map((id) => leaseTree(mirror, id))
  return { trees, count: roots.length }
}

/** The number of leases and keys of a holder. */
export function extentOf(
  mirror: Mirror,
  holder: string,
): { readonly leases: number; readonly keys: number } {
  const own = mirror.holders.get(holder) ?? new Set<string>()
  let keys = 0
  for (const id of own) keys += mirror.leases.get(id)?.keys.length ?? 0
  return { leases: own.size, keys }
}
