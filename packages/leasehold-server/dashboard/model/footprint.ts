import { count } from './format.ts'
import type { LeaseRow, Mirror } from './mirror.ts'

/** A lease with those under it. */
export interface Branch {
  readonly id: string
  readonly row: LeaseRow | undefined
  readonly under: readonly Branch[]
}

/** Deeper than this the page does not look. */
const DEPTH_MAX = 8

/** What a lease is for, as people would call it: by its labels, or else by its keys. */
export function leaseName(row: LeaseRow | undefined): string {
  if (row === undefined) return 'a lease that is not known here'
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

/** A lease and all under it, whoever holds them. */
export function branchOf(mirror: Mirror, id: string, depth = 0): Branch {
  const children = depth < DEPTH_MAX ? mirror.childrenOf(id) : []
  const under = children.map((child) => branchOf(mirror, child, depth + 1))
  return { id, row: mirror.leases.get(id), under }
}

/**
 * All leases of a holder as trees, without those below one of them; at most so many trees, and how
 * many there are. The tree of one lease can be left out.
 */
export function footprintOf(
  mirror: Mirror,
  holder: string,
  most: number,
  without?: string,
): { readonly trees: readonly Branch[]; readonly count: number } {
  const own = mirror.holders.get(holder) ?? new Set<string>()
  const isBelow = (id: string) => own.has(mirror.leases.get(id)?.detail?.parent ?? '')
  const roots = [...own].filter((id) => id !== without && !isBelow(id))
  const trees = roots.slice(0, most).map((id) => branchOf(mirror, id))
  return { trees, count: roots.length }
}

/** How many leases a holder has, and how many keys with all of them. */
export function extentOf(
  mirror: Mirror,
  holder: string,
): { readonly leases: number; readonly keys: number } {
  const own = mirror.holders.get(holder) ?? new Set<string>()
  let keys = 0
  for (const id of own) keys += mirror.leases.get(id)?.keys.length ?? 0
  return { leases: own.size, keys }
}
