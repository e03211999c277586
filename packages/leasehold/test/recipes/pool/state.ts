import {
  definitionOf,
  type PoolDefinition,
} from '../../../src/recipes/pool/definition/definition.ts'
import type { Waiter } from '../../../src/recipes/pool/schedule/schedule.ts'
import type { UsageRecord } from '../../../src/recipes/pool/usage/usage.ts'

export const HOUR = 3600_000

/** A queue claim of the pool `p`. */
export const waiter = (token: number, tenant: string, more: Partial<Waiter> = {}) => ({
  token,
  tenant,
  kind: 'k',
  priority: 0,
  count: 1,
  where: [],
  booked: HOUR,
  ...more,
})

/** A permit of the pool `p`. */
export const permit = (token: number, tenant: string, keys: string[], more: object = {}) => ({
  token,
  tenant,
  kind: 'k',
  keys: keys.map((key) => `pool/p/r/${key}`),
  cost: keys.length,
  since: 0,
  booked: HOUR,
  ...more,
})

/** The pool `p` with two resources, or the given ones. */
export function poolState(
  waiters: readonly ReturnType<typeof waiter>[],
  occupants: readonly ReturnType<typeof permit>[] = [],
  more: Partial<PoolDefinition> = {},
  usage: Record<string, number> = {},
) {
  const resources = [{ name: 'g0' }, { name: 'g1' }]
  const definition = definitionOf({ resources, ...more })
  const used = new Map(Object.entries(usage))
  return { pool: 'p', definition, waiters, occupants, usage: used, records: [] as UsageRecord[] }
}
