import type { View } from '../../client/index.ts'
import type { Key, Time, Token } from '../../port/index.ts'
import { unitsOf } from './definition/definition.ts'
import type { Attributes } from './definition/where.ts'
import type { PoolSnapshot } from './pool-snapshot.ts'
import { noticeKey } from './preemption-request.ts'
import type { StoredPermit } from './request.ts'
import { type Forecast, forecast } from './schedule/forecast.ts'
import { guaranteedShares, holdings, scheduleAll } from './schedule/schedule.ts'

/** Who holds what, who waits, and how long the wait will probably take. Times are the store's. */
export interface PoolStatus {
  readonly resources: readonly ResourceStatus[]
  /** The queue, in the order in which it would be served if nobody else came. */
  readonly queue: readonly QueueStatus[]
  readonly tenants: readonly TenantStatus[]
  /** Milliseconds since the store was last heard from. */
  readonly age: number
}

export interface ResourceStatus {
  readonly name: string
  readonly attributes: Attributes
  readonly shares: number
  /** How many shares are free. */
  readonly free: number
  readonly permits: readonly PermitStatus[]
}

export interface PermitStatus {
  readonly token: Token
  readonly holder: string
  readonly tenant: string
  readonly kind: string
  readonly priority: number
  readonly preemptible: boolean
  /** How many shares of this resource it holds. */
  readonly shares: number
  readonly since: Time
  /** When it ends if it is not extended or renewed; `undefined` if it ended during this read. */
  readonly until: Time | undefined
  /** It is being preempted. */
  readonly noticed: boolean
}

export interface QueueStatus {
  readonly token: Token
  readonly holder: string
  readonly tenant: string
  readonly kind: string
  readonly priority: number
  readonly count: number
  readonly since: Time
  /** `undefined` for waiters far back in the queue. */
  readonly forecast: Forecast | undefined
}

export interface TenantStatus {
  readonly tenant: string
  /** Resources held now, and guaranteed among the tenants that hold or want something now. */
  readonly holds: number
  readonly guaranteed: number
  readonly waiting: number
  /** This tenant's part of all recent usage (see `halfLife`) and current bookings, from 0 to 1. */
  readonly used: number
}

export function statusOf(
  snapshot: PoolSnapshot,
  view: View,
  notices: string,
  now: Time,
  untils: ReadonlyMap<Key, Time>,
): PoolStatus {
  const forecasts = forecast(snapshot, now)
  const holderOf = new Map<Key, StoredPermit>()
  for (const permit of snapshot.occupants) for (const key of permit.keys) holderOf.set(key, permit)
  return {
    resources: snapshot.definition.resources.map(({ name, shares, attributes }) => {
      const units = unitsOf(snapshot.pool, { name, shares })
      const held = new Set(units.flatMap((key) => holderOf.get(key) ?? []))
      const permits = [...held].map((permit): PermitStatus => {
        const { token, holder, tenant, kind, priority, preemptible, since, keys } = permit
        const shared = units.filter((key) => keys.includes(key)).length
        const until = untils.get(keys[0]!)
        const noticed = view.places(noticeKey(notices, permit)).length > 0
        const who = { token, holder, tenant, kind, priority, preemptible }
        return { ...who, shares: shared, since, until, noticed }
      })
      const free = units.filter((key) => !holderOf.has(key)).length
      return { name, attributes, shares, free, permits }
    }),
    queue: scheduleAll(snapshot).map(({ waiter }) => {
      const { token, holder, tenant, kind, priority, count, since } = waiter
      const who = { token, holder, tenant, kind, priority, count, since }
      return { ...who, forecast: forecasts.get(token) }
    }),
    tenants: tenantsOf(snapshot),
    age: view.age(),
  }
}

function tenantsOf(snapshot: PoolSnapshot): TenantStatus[] {
  const { definition, usage, waiters, occupants } = snapshot
  const guaranteed = guaranteedShares(snapshot)
  const held = holdings(snapshot)
  const answered = new Set(occupants.map(({ waiter }) => waiter))
  const names = new Set([...Object.keys(definition.tenants ?? {}), ...guaranteed.keys()])
  const sum = [...usage.values()].reduce((total, used) => total + used, 0)
  return [...names].sort().map((tenant) => ({
    tenant,
    holds: held.get(tenant) ?? 0,
    guaranteed: guaranteed.get(tenant) ?? 0,
    waiting: waiters.filter((it) => it.tenant === tenant && !answered.has(it.token)).length,
    used: sum > 0 ? (usage.get(tenant) ?? 0) / sum : 0,
  }))
}
