import type { Place, Snapshot } from '../../client/index.ts'
import type { Key, Time, Token } from '../../port/index.ts'
import { type Definition, POOL_PREFIX, unitsOf } from './definition/definition.ts'
import { preemptedFrom } from './preemption-request.ts'
import { type StoredPermit, type StoredWaiter, storedPermit, storedWaiter } from './request.ts'
import type { PoolState, PreemptedPermit } from './schedule/schedule.ts'
import { type UsageRecord, usageOf, usageRecordFrom } from './usage/usage.ts'

/** The keys of a pool. `books` and `line` are old words that stay in stored keys. */
export interface PoolKeys {
  readonly prefix: string
  readonly definition: Key
  readonly queue: Key
  readonly records: Key
  readonly notice: string
}

export function keysOf(pool: string): PoolKeys {
  const prefix = `${POOL_PREFIX}${pool}/`
  return {
    prefix,
    definition: `${prefix}definition`,
    queue: `${prefix}line`,
    records: `${prefix}books`,
    notice: `${prefix}notice/`,
  }
}

/** The state of a pool, read from its keys. */
export interface PoolSnapshot extends PoolState<StoredWaiter, StoredPermit> {
  readonly records: readonly UsageRecord[]
  /**
   * The latest time stored anywhere in the pool. It serves as the current time, because local
   * clocks differ and all processes must come to the same decision.
   */
  readonly latest: Time
}

export function poolSnapshot(
  claims: Snapshot,
  pool: string,
  keys: PoolKeys,
  definition: Definition,
): PoolSnapshot {
  const occupants = occupantsOf(claims, pool, definition)
  const waiters = claims.places(keys.queue).flatMap((place) => storedWaiter(place) ?? [])
  const records = claims.places(keys.records).map(({ value }) => usageRecordFrom(value))
  const preempted = preemptedPermits(claims, keys)
  const latest = latestOf(waiters, occupants, records)
  const usage = usageOf(records, occupants, latest, definition.halfLife)
  return { pool, definition, waiters, occupants, usage, preempted, records, latest }
}

function preemptedPermits(claims: Snapshot, keys: PoolKeys): PreemptedPermit[] {
  const found: PreemptedPermit[] = []
  for (const key of claims.keys()) {
    if (!key.startsWith(keys.notice)) continue
    const one = preemptedFrom(claims.places(key)[0]?.value)
    if (one !== undefined) found.push(one)
  }
  return found
}

function occupantsOf(claims: Snapshot, pool: string, definition: Definition): StoredPermit[] {
  const found = new Map<Token, { place: Place; keys: Key[]; cost: number }>()
  for (const resource of definition.resources) {
    for (const key of unitsOf(pool, resource)) {
      const place = claims.places(key)[0]
      if (place === undefined) continue
      const permit = found.get(place.token) ?? { place, keys: [], cost: 0 }
      permit.keys.push(key)
      permit.cost += 1 / resource.shares
      found.set(place.token, permit)
    }
  }
  return [...found.values()].map(({ place, keys, cost }) => storedPermit(place, keys, cost))
}

function latestOf(
  waiters: readonly StoredWaiter[],
  occupants: readonly StoredPermit[],
  records: readonly UsageRecord[],
): Time {
  let latest = 0
  for (const { since } of waiters) latest = Math.max(latest, since)
  for (const { since } of occupants) latest = Math.max(latest, since)
  for (const { accounts } of records) {
    for (const { at } of Object.values(accounts)) latest = Math.max(latest, at)
  }
  return latest
}
