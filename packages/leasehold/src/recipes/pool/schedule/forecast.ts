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

/** With so many observations of a kind, they are believed. */
const OBSERVATIONS_MIN = 3
/** How many are foretold: the further ahead, the less it is worth. */
const FORECASTS_MAX = 200

export interface Forecast {
  /** How many milliseconds it will probably wait from now. */
  readonly wait: number
  /**
   * What that rests on: `observed` where it was seen how long each kind of work before it is held;
   * `booked` where for some of it there is only what its owner booked, which is mostly too long.
   */
  readonly basis: 'observed' | 'booked'
}

/** How long work of this kind is usually held, where that is known. */
export function expectedHold(records: readonly UsageRecord[], kind: string): number | undefined {
  const expected = expectation(holdTimes(records, kind))
  return expected !== undefined && expected.seen >= OBSERVATIONS_MIN ? expected.rest : undefined
}

interface WithKind {
  readonly kind: string
}

type Running = Held & Occupant & WithKind & { readonly ends: Time }

/**
 * How long each waiter will probably wait: the pool is played forward, everyone being served by the
 * same decision as in earnest and holding for as long as their kind usually does.
 *
 * It is as good as the past is like the future: nobody new comes in it, nobody gives up, and all
 * hold for the mean of their kind. Those who come later and have used less will make it longer.
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

/** What all processes together have seen of a kind. */
function holdTimes(records: readonly UsageRecord[], kind: string): HoldTimes | undefined {
  let times: HoldTimes | undefined
  for (const { kinds } of records) {
    const seen = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
    if (seen !== undefined) times = added(times, seen)
  }
  return times
}
