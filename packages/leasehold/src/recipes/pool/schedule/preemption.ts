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

/** A permit, as far as it matters whether it can be asked back. */
export interface Preemptible extends Occupant {
  readonly priority: number
  readonly preemptible: boolean
  readonly cost: number
}

/**
 * Which permits are to be asked back for which waiters: a pure function, like `turn`.
 *
 * Asked back are only permits that were taken as `preemptible`, for a request of higher priority; of
 * these the ones of the lowest priority first, and then the youngest, which lose the least work.
 * Another tenant's permit is asked back only while that tenant is left with its guaranteed share:
 * a tenant cannot gain by giving all its requests a high priority. Where all that may be asked back
 * would not be enough, nothing is. What is returned is for the one who asked, also where others are
 * before it in line: without its asking there would be nothing to have.
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

/** Who has been given notice for one waiter is not given notice for another. */
function isForAnother({ preempted = [], waiters }: PoolState, permit: Preemptible, waiter: Waiter) {
  const before = preempted.find((it) => it.permit === permit.token)
  if (before === undefined || before.waiter === waiter.token) return false
  return waiters.some(({ token }) => token === before.waiter)
}

function isAsked<P extends Preemptible>(asked: ReadonlyMap<Token, readonly P[]>, permit: P) {
  return [...asked.values()].some((victims) => victims.includes(permit))
}

/** Those without which it would not be enough. */
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

/** Whether the waiter could be served from what is kept for it and what these would return. */
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
