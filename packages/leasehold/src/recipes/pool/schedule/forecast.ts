import type { Time, Token } from '../../../port/index.ts'
import { added, expectation } from '../usage/hold-times.ts'
import type { HoldTimes } from '../usage/usage.ts'
import {
  type Account,
  addTo,
  charge,
  EMPTY_RECORD,
  type Held,
  type UsageRecord,
  usageOf,
} from '../usage/usage.ts'
import { costOf, type Occupant, type PoolState, schedule, type Waiter } from './schedule.ts'

/** With this many observations, the hold times of a kind are trusted. */
const OBSERVATIONS_MIN = 3
/** How many waiters get a forecast. The further ahead, the less reliable it is. */
const FORECASTS_MAX = 200

export interface Forecast {
  /** The probable wait from now, in milliseconds. */
  readonly wait: number
  /**
   * `observed`: based on how long each kind of work ahead was held before. `booked`: for some of it
   * only the booked time is known, which is usually too long.
   */
  readonly basis: 'observed' | 'booked'
}

/** How long work of this kind is usually held, if known. */
export function expectedHold(records: readonly UsageRecord[], kind: string): number | undefined {
  const expected = expectation(holdTimes(records, kind))
  return expected !== undefined && expected.seen >= OBSERVATIONS_MIN ? expected.rest : undefined
}

interface WithKind {
  readonly kind: string
}

type Running = Held & Occupant & WithKind & { readonly ends: Time }

/**
 * How long each waiter will probably wait. It simulates the pool: the real schedule serves
 * everyone, and each permit is held as long as its kind usually is.
 *
 * It assumes that nobody joins or gives up, and that all work takes its kind's mean time. Later
 * requests of tenants with less usage make the wait longer.
 */
export function forecast<W extends Waiter & WithKind, O extends Occupant & Held & WithKind>(
  state: PoolState<W, O> & { readonly records: readonly UsageRecord[] },
  now: Time,
): Map<Token, Forecast> {
  const { definition, records } = state
  const { halfLife } = definition
  const found = new Map<Token, Forecast>()
  const accounts: Record<string, Account> = {}
  let isObserved = true
  const rest = (kind: string, held: number, booked: number): number => {
    const expected = expectation(holdTimes(records, kind), held)
    if (expected !== undefined && expected.seen >= OBSERVATIONS_MIN) return expected.rest
    isObserved = false
    return booked > held ? booked - held : held / 2
  }
  let running: Running[] = state.occupants.map((it) => {
    const held = Math.max(0, now - it.since)
    return { ...it, ends: now + rest(it.kind, held, it.booked) }
  })
  let waiters: readonly W[] = state.waiters
  for (let at = now; waiters.length > 0 && found.size < FORECASTS_MAX; ) {
    const usage = usageOf([...records, { ...EMPTY_RECORD, accounts }], running, at, halfLife)
    for (const { waiter, units } of schedule({ ...state, waiters, occupants: running, usage })) {
      if (units === undefined) continue
      found.set(waiter.token, { wait: at - now, basis: isObserved ? 'observed' : 'booked' })
      const { token, tenant, kind, booked } = waiter
      const ends = at + rest(kind, 0, booked)
      const cost = costOf(definition, waiter)
      running.push({ token, tenant, kind, booked, keys: units, cost, since: at, ends })
    }
    waiters = waiters.filter(({ token }) => !found.has(token))
    const next = Math.min(...running.map(({ ends }) => ends))
    if (next === Infinity) break
    for (const { tenant, cost, since } of running.filter(({ ends }) => ends <= next)) {
      const used = { used: charge(cost, next - since, halfLife), at: next }
      accounts[tenant] = addTo(accounts[tenant], used, halfLife)
    }
    running = running.filter(({ ends }) => ends > next)
    at = next
  }
  return found
}

/** The hold times of a kind, from the records of all processes. */
function holdTimes(records: readonly UsageRecord[], kind: string): HoldTimes | undefined {
  let times: HoldTimes | undefined
  for (const { kinds } of records) {
    const seen = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
    if (seen !== undefined) times = added(times, seen)
  }
  return times
}
