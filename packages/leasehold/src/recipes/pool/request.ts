import { STRATEGIES, type StrategyName } from '../../client/index.ts'
import {
  type Duration,
  invalid,
  type Key,
  milliseconds,
  show,
  type Time,
  type Token,
} from '../../port/index.ts'
import { objectIn } from '../json.ts'
import { checkLabel } from './definition/definition.ts'
import { type Condition, conditionsOf, type Where } from './definition/where.ts'
import type { Need, Occupant, Waiter } from './schedule/schedule.ts'

/** What is asked of a pool. */
export interface TakeOptions {
  readonly tenant: string
  /** What kind of work it is for: waits are foretold by how long each kind was held before. */
  readonly kind?: string | undefined
  /** Which resources will do: `'memory >= 40, model = H100'`, or the same as an object. */
  readonly where?: Where | undefined
  /** How many resources, all at once or none. 1 if not given. */
  readonly count?: number | undefined
  /** How many shares of each. The whole of each if not given. */
  readonly shares?: number | undefined
  /** Among the requests of its own tenant the highest is served first. 0 if not given. */
  readonly priority?: number | undefined
  /**
   * `reservation`, if not given: booked for `ttl` and no longer, unless it is extended by hand; a
   * holder that dies keeps it until then. `lock`: kept by a heartbeat for as long as its process
   * lives and does not return it; free again a `ttl` after its process died.
   */
  readonly strategy?: Extract<StrategyName, 'reservation' | 'lock'> | undefined
  /**
   * See `strategy`: an hour if not given, or 30 s where it is kept by a heartbeat. With `adaptive` it
   * is kept by a heartbeat, with the ttl that was learnt for its `kind`.
   */
  readonly ttl?: Duration | 'adaptive' | undefined
  readonly grace?: Duration | undefined
  /** How long to wait in line at most. For as long as it takes if not given. */
  readonly wait?: Duration | undefined
  /** Ends the wait with `aborted`. */
  readonly signal?: AbortSignal | undefined
  /** It may be taken back for a request of higher priority, after a notice: see `Permit.notice`. */
  readonly preemptible?: boolean | undefined
}

/** A request that was checked. */
export interface Request extends Need {
  readonly kind: string
  readonly preemptible: boolean
  readonly strategy: 'reservation' | 'lock'
  readonly ttl: number
  readonly grace: Duration | undefined
  readonly wait: number
  readonly signal: AbortSignal | undefined
}

/** A place in line, as it is read from the store. */
export interface StoredWaiter extends Waiter {
  readonly holder: string
  readonly kind: string
  readonly since: Time
}

/** A permit, as it is read from the store. */
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

/** The request, with the ttl that was learnt where that is asked for. */
export function requestOf(options: TakeOptions, learnt?: number): Request {
  if (typeof options !== 'object' || options === null) {
    throw invalid(`options is ${show(options)}: give an object with the tenant that asks`)
  }
  const { tenant, kind = UNNAMED, count = 1, shares, priority = 0 } = options
  checkLabel('tenant', tenant)
  checkLabel('kind', kind)
  checkWhole('count', count, 1, COUNT_MAX)
  if (shares !== undefined) checkWhole('shares', shares, 1, COUNT_MAX)
  checkWhole('priority', priority, -PRIORITY_MAX, PRIORITY_MAX)
  const isLearnt = options.ttl === 'adaptive'
  const { strategy = isLearnt ? 'lock' : 'reservation', signal } = options
  if (strategy !== 'reservation' && strategy !== 'lock') {
    throw invalid(
      `strategy is ${show(strategy)}: a pool's permits are kept as 'reservation' or as 'lock'`,
    )
  }
  if (isLearnt && strategy !== 'lock') {
    throw invalid(
      `strategy is ${show(strategy)} with an adaptive ttl: that is kept by a heartbeat, so leave the strategy out or give the ttl`,
    )
  }
  const wait = options.wait === undefined ? Infinity : milliseconds(options.wait, 'wait')
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw invalid(`signal is ${show(signal)}: it must be an AbortSignal`)
  }
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
    signal,
  }
}

function ttlOf(ttl: TakeOptions['ttl'], strategy: Request['strategy']): number {
  const isGiven = ttl !== undefined && ttl !== 'adaptive'
  return isGiven ? milliseconds(ttl, 'ttl') : STRATEGIES[strategy].ttl
}

/** What others must know of somebody in line. */
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

/** What others must know of a permit; `line` is the place in line that it was given for. */
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

/** A place in line, or `undefined` where its text is not one that this program wrote. */
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

/** A permit. One whose text cannot be read occupies what it occupies all the same. */
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

function numberOf(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise
}

function checkWhole(what: string, value: unknown, min: number, max: number): void {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return
  throw invalid(`${what} is ${show(value)}: give a whole number from ${min} to ${max}`)
}
