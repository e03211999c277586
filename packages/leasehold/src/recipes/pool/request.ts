import { STRATEGIES, type StrategyName } from '../../client/index.ts'
import {
  checkNames,
  type Duration,
  invalid,
  type Key,
  knownNames,
  milliseconds,
  positive,
  show,
  type Time,
  type Token,
} from '../../port/index.ts'
import { objectIn } from '../values/json.ts'
import { checkLabel } from './definition/definition.ts'
import { type Condition, conditionsOf, type Where } from './definition/where.ts'
import type { Need, Occupant, Waiter } from './schedule/schedule.ts'

/** What a request to a pool can specify. */
export interface TakeOptions {
  readonly tenant: string
  /** The kind of work. Forecasts use how long each kind was held before. */
  readonly kind?: string | undefined
  /** Which resources are suitable: `'memory >= 40, model = H100'`, or the same as an object. */
  readonly where?: Where | undefined
  /** How many resources, all together or none. Default: 1. */
  readonly count?: number | undefined
  /** How many shares of each resource. Default: all of them. */
  readonly shares?: number | undefined
  /** Of the requests of one tenant, the highest priority is served first. Default: 0. */
  readonly priority?: number | undefined
  /**
   * `reservation`, the default: booked for `ttl`, unless it is extended by hand. A holder that dies
   * keeps it until then. `lock`: kept by a heartbeat until it is returned; free a `ttl` after its
   * process died.
   */
  readonly strategy?: Extract<StrategyName, 'reservation' | 'lock'> | undefined
  /**
   * Default: 1 hour for `reservation`, 30 s for `lock`. `adaptive` uses a heartbeat, with the ttl
   * that was learnt for the `kind`.
   */
  readonly ttl?: Duration | 'adaptive' | undefined
  readonly grace?: Duration | undefined
  /** The longest wait in the queue. Default: no limit. */
  readonly wait?: Duration | undefined
  /** How long the store may take to answer one call. The client's `timeout` if not given. */
  readonly timeout?: Duration | undefined
  /** Ends the wait with `aborted`. */
  readonly signal?: AbortSignal | undefined
  /** It may be preempted, after a notice, by a request of higher priority: see `Permit.notice`. */
  readonly preemptible?: boolean | undefined
}

const TAKE_OPTIONS = knownNames<TakeOptions>({
  tenant: true,
  kind: true,
  where: true,
  count: true,
  shares: true,
  priority: true,
  strategy: true,
  ttl: true,
  grace: true,
  wait: true,
  timeout: true,
  signal: true,
  preemptible: true,
})

/** A request after validation. */
export interface Request extends Need {
  readonly kind: string
  readonly preemptible: boolean
  readonly strategy: 'reservation' | 'lock'
  readonly ttl: number
  readonly grace: Duration | undefined
  readonly wait: number
  readonly timeout: Duration | undefined
  readonly signal: AbortSignal | undefined
}

/** A waiter, as read from the store. */
export interface StoredWaiter extends Waiter {
  readonly holder: string
  readonly kind: string
  readonly since: Time
}

/** A permit, as read from the store. */
export interface StoredPermit extends Occupant {
  readonly holder: string
  readonly kind: string
  readonly priority: number
  readonly preemptible: boolean
  readonly cost: number
  readonly since: Time
  readonly booked: number
}

const PRIORITY_MAX = 1000
const COUNT_MAX = 256
const UNNAMED = 'work'

/** Validates a request. `learnt` is the ttl to use for `ttl: 'adaptive'`. */
export function requestOf(options: TakeOptions, learnt?: number): Request {
  if (typeof options !== 'object' || options === null) {
    throw invalid(`options is ${show(options)}: give an object with a tenant`)
  }
  checkNames('take', options, TAKE_OPTIONS)
  const { tenant, kind = UNNAMED, count = 1, shares, priority = 0 } = options
  checkLabel('tenant', tenant)
  checkLabel('kind', kind)
  checkInteger('count', count, 1, COUNT_MAX)
  if (shares !== undefined) checkInteger('shares', shares, 1, COUNT_MAX)
  checkInteger('priority', priority, -PRIORITY_MAX, PRIORITY_MAX)
  const isLearnt = options.ttl === 'adaptive'
  const { strategy = isLearnt ? 'lock' : 'reservation', signal } = options
  if (strategy !== 'reservation' && strategy !== 'lock') {
    throw invalid(`strategy is ${show(strategy)}: it must be 'reservation' or 'lock'`)
  }
  if (isLearnt && strategy !== 'lock') {
    throw invalid(
      `strategy is ${show(strategy)}, but an adaptive ttl needs 'lock'. Leave the strategy out, or give a ttl`,
    )
  }
  const wait = options.wait === undefined ? Infinity : milliseconds(options.wait, 'wait')
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw invalid(`signal is ${show(signal)}: it must be an AbortSignal`)
  }
  if (options.timeout !== undefined) positive(options.timeout, 'timeout')
  const ttl = learnt ?? ttlOf(options.ttl, strategy)
  return {
    tenant,
    kind,
    count,
    shares,
    priority,
    where: conditionsOf(options.where),
    booked: ttl,
    preemptible: options.preemptible === true,
    strategy,
    ttl,
    grace: options.grace,
    wait,
    timeout: options.timeout,
    signal,
  }
}

function ttlOf(ttl: TakeOptions['ttl'], strategy: Request['strategy']): number {
  const isGiven = ttl !== undefined && ttl !== 'adaptive'
  return isGiven ? milliseconds(ttl, 'ttl') : STRATEGIES[strategy].ttl
}

/** The value of a claim in the queue. */
export function waiterJson({
  tenant,
  kind,
  priority,
  count,
  shares,
  where,
  booked,
}: Request): string {
  return JSON.stringify({ tenant, kind, priority, count, shares, where, booked })
}

/**
 * The value of a permit's claims. `waiter` is the queue claim that it was given for; the stored
 * field is called `line`, and renaming it would break permits that are held.
 */
export function permitJson(request: Request, waiter: Token | undefined): string {
  const { tenant, kind, priority, preemptible, booked } = request
  return JSON.stringify({ tenant, kind, priority, preemptible, line: waiter, booked })
}

interface Place {
  readonly token: Token
  readonly holder: string
  readonly value?: string | undefined
  readonly claimedAt: Time
}

/** Parses a claim in the queue. Returns `undefined` if it is unreadable. */
export function storedWaiter({ token, holder, value, claimedAt }: Place): StoredWaiter | undefined {
  const read = objectIn(value)
  if (read === undefined || typeof read['tenant'] !== 'string') return undefined
  const { tenant, kind, shares, where } = read
  return {
    token,
    holder,
    since: claimedAt,
    tenant,
    kind: typeof kind === 'string' ? kind : UNNAMED,
    priority: numberOf(read['priority'], 0),
    count: numberOf(read['count'], 1),
    shares: typeof shares === 'number' ? shares : undefined,
    where: Array.isArray(where) ? (where as Condition[]) : [],
    booked: numberOf(read['booked'], 0),
  }
}

/** Parses a permit. An unreadable permit still occupies its resources. */
export function storedPermit(place: Place, keys: readonly Key[], cost: number): StoredPermit {
  const read = objectIn(place.value) ?? {}
  const { tenant, kind, line } = read
  return {
    token: place.token,
    holder: place.holder,
    since: place.claimedAt,
    keys,
    cost,
    tenant: typeof tenant === 'string' ? tenant : '',
    kind: typeof kind === 'string' ? kind : UNNAMED,
    priority: numberOf(read['priority'], 0),
    preemptible: read['preemptible'] === true,
    waiter: typeof line === 'number' ? line : undefined,
    booked: numberOf(read['booked'], 0),
  }
}

function numberOf(value: unknown, fallback: number): number {
  return typeof value === 'number' ? value : fallback
}

function checkInteger(what: string, value: unknown, min: number, max: number): void {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return
  throw invalid(`${what} is ${show(value)}: give an integer from ${min} to ${max}`)
}
