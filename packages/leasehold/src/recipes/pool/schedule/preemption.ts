import type { Key, Token } from '../../../port/index.ts'
import { unitsOf } from '../definition/definition.ts'
import {
  type Decision,
  guaranteedShares,
  holdings,
  type Occupant,
  type PoolState,
  scheduleAll,
  suits,
  type Waiter,
} from './schedule.ts'

/** The fields of a permit that preemption depends on. */
export interface Preemptible extends Occupant {
  readonly priority: number
  readonly preemptible: boolean
  readonly cost: number
}

/**
 * Which permits to preempt for which waiters: a pure function, like `schedule`.
 *
 * Only permits taken as `preemptible` are preempted, and only for a request of higher priority. The
 * lowest priority goes first, then the youngest permit, which loses the least work. Another
 * tenant's permit is preempted only if that tenant keeps its guaranteed share: a tenant cannot gain
 * by giving all its requests a high priority. If all candidates together are not enough, none is
 * preempted. What is returned is for the waiter that asked, even if others are ahead of it in the
 * queue.
 */
export function preemptions<W extends Waiter, P extends Preemptible>(
  state: PoolState<W, P>,
): Map<Token, readonly P[]> {
  const asked = new Map<Token, readonly P[]>()
  const candidates = state.occupants
    .filter(({ preemptible }) => preemptible)
    .sort((a, b) => a.priority - b.priority || b.token - a.token)
  if (candidates.length === 0) return asked
  const held = holdings(state)
  const guaranteed = guaranteedShares(state)
  const isLeftEnough = ({ tenant, cost }: P) =>
    (held.get(tenant) ?? 0) - cost >= (guaranteed.get(tenant) ?? 0) - 1e-9
  for (const decision of scheduleAll(state)) {
    const { waiter } = decision
    if (decision.units !== undefined) continue
    const victims: P[] = []
    for (const permit of candidates) {
      if (permit.priority >= waiter.priority || isAsked(asked, permit)) continue
      if (isForAnother(state, permit, waiter)) continue
      if (permit.tenant !== waiter.tenant && !isLeftEnough(permit)) continue
      victims.push(permit)
      held.set(permit.tenant, (held.get(permit.tenant) ?? 0) - permit.cost)
      if (isEnough(state, decision, victims)) break
    }
    const needed = isEnough(state, decision, victims) ? fewest(state, decision, victims) : []
    for (const { tenant, cost } of victims.filter((permit) => !needed.includes(permit))) {
      held.set(tenant, (held.get(tenant) ?? 0) + cost)
    }
    if (needed.length > 0) asked.set(waiter.token, needed)
  }
  return asked
}

/** A permit that got notice for one waiter is not preempted for another. */
function isForAnother({ preempted = [], waiters }: PoolState, permit: Preemptible, waiter: Waiter) {
  const before = preempted.find((it) => it.permit === permit.token)
  if (before === undefined || before.waiter === waiter.token) return false
  return waiters.some(({ token }) => token === before.waiter)
}

function isAsked<P extends Preemptible>(asked: ReadonlyMap<Token, readonly P[]>, permit: P) {
  return [...asked.values()].some((victims) => victims.includes(permit))
}

/** The fewest permits that are still enough. */
function fewest<P extends Preemptible>(
  state: PoolState,
  decision: Decision,
  victims: readonly P[],
): readonly P[] {
  let needed = victims
  for (const permit of victims) {
    const fewer = needed.filter((other) => other !== permit)
    if (isEnough(state, decision, fewer)) needed = fewer
  }
  return needed
}

/** Whether its reserved units and what these permits return are enough for the waiter. */
function isEnough(
  { pool, definition }: PoolState,
  { waiter, keeps }: Decision,
  victims: readonly Preemptible[],
): boolean {
  const units = new Set<Key>([...keeps, ...victims.flatMap(({ keys }) => keys)])
  const enough = definition.resources.filter(
    (resource) =>
      suits(resource, waiter) &&
      unitsOf(pool, resource).filter((key) => units.has(key)).length >=
        (waiter.shares ?? resource.shares),
  )
  return enough.length >= waiter.count
}
