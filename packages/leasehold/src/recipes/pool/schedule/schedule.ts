import type { Key, Token } from '../../../port/index.ts'
import { type Definition, unitsOf, weightOf } from '../definition/definition.ts'
import { type Condition, meets } from '../definition/where.ts'
import { charge } from '../usage/usage.ts'

/** What a waiter asks for: `count` whole resources, or `shares` shares of each. */
export interface Need {
  readonly tenant: string
  /** Of the waiters of one tenant, the highest priority is served first. */
  readonly priority: number
  readonly count: number
  readonly shares?: number | undefined
  readonly where: readonly Condition[]
  /** How long it will be held, as far as its owner knows, in milliseconds. */
  readonly booked: number
}

/** A claim in the queue. */
export interface Waiter extends Need {
  readonly token: Token
}

/** A permit: what is held under one token. */
export interface Occupant {
  readonly token: Token
  readonly tenant: string
  readonly keys: readonly Key[]
  /** The queue claim that this permit was given for. That waiter is served. */
  readonly waiter?: Token | undefined
}

/** Everything that the decision depends on. Processes that see the same state decide the same. */
export interface PoolState<W extends Waiter = Waiter, O extends Occupant = Occupant> {
  readonly pool: string
  readonly definition: Definition
  readonly waiters: readonly W[]
  readonly occupants: readonly O[]
  /** What each tenant has used and booked: see `usage.ts`. */
  readonly usage: ReadonlyMap<string, number>
  /** Permits with a preemption notice. What they return is for the waiter that asked. */
  readonly preempted?: readonly PreemptedPermit[] | undefined
}

/** A permit that is being preempted for a waiter. */
export interface PreemptedPermit {
  readonly permit: Token
  readonly waiter: Token
  readonly keys: readonly Key[]
}

export interface Decision<W extends Waiter = Waiter> {
  readonly waiter: W
  /** What it may take now; `undefined` if it must wait. */
  readonly units: readonly Key[] | undefined
  /** Free units that are reserved for it until there are enough. */
  readonly keeps: readonly Key[]
}

/**
 * The schedule: the waiters in the order in which they are served, each with what it may take now.
 * It ends when nothing is free any more. It is a pure function without a clock, so all processes
 * that see the same state get the same result, and exactly one of them takes each resource.
 *
 * **Order.** Repeatedly choose the tenant that is furthest behind. Of its waiters, choose the
 * highest priority, then the oldest. A tenant that holds less than its guaranteed share comes
 * first, whatever it used before. The guaranteed share is its weight's part of the pool, among the
 * tenants that hold or want something now. Otherwise the tenant with the least usage per weight
 * comes first. So history decides who is next, but never keeps a tenant from its guaranteed share.
 * Priorities decide within a tenant, never between tenants. For a request larger than its tenant's
 * share, see `comesFirst`.
 *
 * **No starvation.** A waiter that cannot be served yet reserves suitable free units, up to what it
 * needs. Later waiters may take only the rest. So a stream of small requests cannot starve a large
 * one. The price is that some resources are idle while a large request collects its own, because
 * nobody knows when the others will be returned.
 *
 * Unknown tenants, and waiters that the pool can never serve, are left out.
 */
export function schedule<W extends Waiter>(state: PoolState<W>): Decision<W>[] {
  const free = freeUnits(state)
  const decisions: Decision<W>[] = []
  // If nothing is left, the order of the others does not matter.
  const isOver = () => free.every(({ units }) => units.length === 0)
  if (isOver()) return decisions
  for (const decision of decide(state, free)) {
    decisions.push(decision)
    if (isOver()) break
  }
  return decisions
}

/** The schedule of all waiters, including those that cannot take anything now. */
export function scheduleAll<W extends Waiter>(state: PoolState<W>): Decision<W>[] {
  return [...decide(state, freeUnits(state))]
}

function* decide<W extends Waiter>(
  state: PoolState<W>,
  free: readonly Free[],
): Generator<Decision<W>> {
  const { definition } = state
  const tenants = tenantsOf(state)
  for (let next = mostBehind(tenants); next !== undefined; next = mostBehind(tenants)) {
    const waiter = next.queue[next.served++]!
    const units = take(free, waiter)
    yield { waiter, units, keeps: units === undefined ? keep(free, waiter) : [] }
    // Counted whether it is served or not: this is what the tenant gets next.
    const cost = costOf(definition, waiter)
    next.held += cost
    next.usage += charge(cost, waiter.booked, definition.halfLife)
  }
}

/** The part of the pool that is guaranteed to each tenant that holds or wants something. */
export function guaranteedShares(state: PoolState): Map<string, number> {
  const active = new Set(state.occupants.map(({ tenant }) => tenant))
  for (const { tenant } of unservedWaiters(state)) active.add(tenant)
  const weights = [...active].map(
    (tenant) => [tenant, weightOf(state.definition, tenant) ?? 0] as const,
  )
  const sum = weights.reduce((total, [, weight]) => total + weight, 0)
  const { length } = state.definition.resources
  return new Map(weights.map(([tenant, weight]) => [tenant, sum > 0 ? (length * weight) / sum : 0]))
}

/** How many resources each tenant holds; shares count as fractions. */
export function holdings({ pool, definition, occupants }: PoolState): Map<string, number> {
  const parts = new Map<Key, number>()
  for (const resource of definition.resources) {
    for (const key of unitsOf(pool, resource)) parts.set(key, 1 / resource.shares)
  }
  const held = new Map<string, number>()
  for (const { tenant, keys } of occupants) {
    const cost = keys.reduce((sum, key) => sum + (parts.get(key) ?? 0), 0)
    held.set(tenant, (held.get(tenant) ?? 0) + cost)
  }
  return held
}

/** How many resources a request needs. For shares, by the first resource that suits. */
export function costOf(definition: Definition, need: Need): number {
  if (need.shares === undefined) return need.count
  const suiting = definition.resources.find((resource) => suits(resource, need))
  return (need.count * need.shares) / (suiting?.shares ?? 1)
}

/** How many resources of the pool could serve this request if they were free. */
export function countSuitable(definition: Definition, need: Need): number {
  if (need.shares === undefined && need.where.length === 0) return definition.resources.length
  return definition.resources.filter((resource) => suits(resource, need)).length
}

export function suits(resource: Definition['resources'][number], need: Need): boolean {
  return (need.shares ?? 1) <= resource.shares && meets(resource.attributes, need.where)
}

/** The free units of one resource, and for which waiter a unit is reserved, if any. */
interface Free {
  readonly resource: Definition['resources'][number]
  readonly reserved: ReadonlyMap<Key, Token>
  units: readonly Key[]
}

function freeUnits(state: PoolState): Free[] {
  const { pool, definition, occupants, preempted = [] } = state
  const taken = new Set(occupants.flatMap(({ keys }) => keys))
  const reserved = new Map(
    preempted.flatMap(({ keys, waiter }) => keys.map((key) => [key, waiter])),
  )
  return definition.resources.map((resource) => ({
    resource,
    reserved,
    units: unitsOf(pool, resource).filter((key) => !taken.has(key)),
  }))
}

function unitsFor({ units, reserved }: Free, { token }: Waiter): readonly Key[] {
  if (reserved.size === 0) return units
  return units.filter((key) => (reserved.get(key) ?? token) === token)
}

function sharesNeeded(free: Free, need: Need): number {
  return need.shares ?? free.resource.shares
}

/** Takes what the waiter needs from the free units, or nothing. */
function take(free: readonly Free[], waiter: Waiter): readonly Key[] | undefined {
  const enough = free.filter(
    (it) => suits(it.resource, waiter) && unitsFor(it, waiter).length >= sharesNeeded(it, waiter),
  )
  if (enough.length < waiter.count) return undefined
  // Take shares from the fullest resource, so that whole resources stay whole.
  if (waiter.shares !== undefined) enough.sort((a, b) => a.units.length - b.units.length)
  return enough.slice(0, waiter.count).flatMap((it) => remove(it, waiter))
}

/** Reserves suitable units, from the resources that miss the least. */
function keep(free: readonly Free[], waiter: Waiter): readonly Key[] {
  const missing = (it: Free) => sharesNeeded(it, waiter) - unitsFor(it, waiter).length
  const some = free.filter((it) => suits(it.resource, waiter) && unitsFor(it, waiter).length > 0)
  some.sort((a, b) => missing(a) - missing(b))
  return some.slice(0, waiter.count).flatMap((it) => remove(it, waiter))
}

function remove(free: Free, waiter: Waiter): readonly Key[] {
  const taken = unitsFor(free, waiter).slice(0, sharesNeeded(free, waiter))
  free.units = free.units.filter((key) => !taken.includes(key))
  return taken
}

function unservedWaiters<W extends Waiter>({ definition, waiters, occupants }: PoolState<W>): W[] {
  const answered = new Set(occupants.map(({ waiter }) => waiter))
  return waiters.filter(
    (waiter) =>
      !answered.has(waiter.token) &&
      weightOf(definition, waiter.tenant) !== undefined &&
      countSuitable(definition, waiter) >= waiter.count,
  )
}

function queuesByTenant<W extends Waiter>(state: PoolState<W>): Map<string, W[]> {
  const queues = new Map<string, W[]>()
  for (const waiter of unservedWaiters(state)) {
    const queue = queues.get(waiter.tenant)
    if (queue === undefined) queues.set(waiter.tenant, [waiter])
    else queue.push(waiter)
  }
  for (const queue of queues.values()) {
    queue.sort((a, b) => b.priority - a.priority || a.token - b.token)
  }
  return queues
}

interface Tenant<W> {
  readonly name: string
  readonly weight: number
  readonly guaranteed: number
  readonly queue: readonly W[]
  readonly definition: Definition
  held: number
  usage: number
  served: number
}

function tenantsOf<W extends Waiter>(state: PoolState<W>): Tenant<W>[] {
  const { definition, usage } = state
  const queues = queuesByTenant(state)
  const guaranteed = guaranteedShares(state)
  const held = holdings(state)
  return [...queues].map(([name, queue]) => ({
    name,
    weight: weightOf(definition, name)!,
    guaranteed: guaranteed.get(name)!,
    queue,
    definition,
    held: held.get(name) ?? 0,
    usage: usage.get(name) ?? 0,
    served: 0,
  }))
}

function mostBehind<W extends Waiter>(tenants: readonly Tenant<W>[]): Tenant<W> | undefined {
  const open = tenants.filter(({ served, queue }) => served < queue.length)
  const least = Math.min(...open.map(load))
  const ranked = open.map((tenant) => ({ tenant, first: comesFirst(tenant, least) }))
  let best: (typeof ranked)[number] | undefined
  for (const one of ranked) if (best === undefined || isBefore(one, best)) best = one
  return best?.tenant
}

function load<W>({ usage, weight }: Tenant<W>): number {
  return usage / weight
}

interface Ranked<W> {
  readonly tenant: Tenant<W>
  readonly first: boolean
}

function isBefore<W extends Waiter>(a: Ranked<W>, b: Ranked<W>): boolean {
  if (a.first !== b.first) return a.first
  const difference = load(a.tenant) - load(b.tenant)
  if (difference !== 0) return difference < 0
  return nextOf(a.tenant).token < nextOf(b.tenant).token
}

function nextOf<W>({ queue, served }: Tenant<W>): W {
  return queue[served]!
}

/**
 * Whether the tenant's next request lies within its guaranteed share. A request larger than the
 * share would never qualify and could wait forever. So it comes first too when its tenant has the
 * least usage per weight.
 */
function comesFirst<W extends Waiter>(tenant: Tenant<W>, least: number): boolean {
  const cost = costOf(tenant.definition, nextOf(tenant))
  if (cost > tenant.guaranteed) return load(tenant) <= least
  return tenant.held + Math.min(1, cost) <= tenant.guaranteed + 1e-9
}
