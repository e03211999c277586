import type { Time, Token } from '../../../port/index.ts'
import { objectIn } from '../../values/json.ts'

/** What a tenant had used at time `at`: resources times milliseconds; older use counts less. */
export interface Account {
  readonly used: number
  readonly at: Time
}

/** A permit that was taken and is not yet recorded as returned. */
export interface OpenPermit {
  readonly token: Token
  readonly tenant: string
  readonly cost: number
  readonly since: Time
  readonly booked: number
}

/**
 * The usage that one process has recorded for its permits. Each process writes only its own record,
 * so no writer can undo another's entries. Readers add all records up.
 */
export interface UsageRecord {
  readonly accounts: Readonly<Record<string, Account>>
  readonly open: readonly OpenPermit[]
  /** How long each kind of work was held: see `hold-times.ts`. */
  readonly kinds: Readonly<Record<string, HoldTimes>>
}

/** Counts of hold times: bucket number to number of observations. */
export type HoldTimes = Readonly<Record<number, number>>

export const EMPTY_RECORD: UsageRecord = { accounts: {}, open: [], kinds: {} }

/** Parses a record. An unreadable record counts as empty. */
export function usageRecordFrom(json: string | undefined): UsageRecord {
  return { ...EMPTY_RECORD, ...(objectIn(json) as Partial<UsageRecord> | undefined) }
}

/** What remains of an account after decay. */
export function decayed({ used, at }: Account, now: Time, halfLife: number): number {
  return used * 2 ** (-Math.max(0, now - at) / halfLife)
}

/** The usage of holding `cost` resources for `held` milliseconds, with decay. */
export function charge(cost: number, held: number, halfLife: number): number {
  const mean = halfLife / Math.LN2
  return cost * mean * (1 - 2 ** (-Math.max(0, held) / halfLife))
}

export function addTo(account: Account | undefined, more: Account, halfLife: number): Account {
  if (account === undefined) return more
  const at = Math.max(account.at, more.at)
  return { used: decayed(account, at, halfLife) + decayed(more, at, halfLife), at }
}

/** The fields of a permit that usage depends on. */
export type Held = Pick<OpenPermit, 'token' | 'tenant' | 'cost' | 'since' | 'booked'>

/**
 * What each tenant has used and booked, as of `now`.
 *
 * A held permit counts for its booked time, or for the time it was held if that is longer. So a
 * tenant that takes much at once is behind others immediately. A recorded permit that vanished
 * without being returned (its process died) counts for its booked time.
 */
export function usageOf(
  records: readonly UsageRecord[],
  held: readonly Held[],
  now: Time,
  halfLife: number,
): Map<string, number> {
  const usage = new Map<string, number>()
  const add = (tenant: string, amount: number) =>
    void usage.set(tenant, (usage.get(tenant) ?? 0) + amount)
  const alive = new Set<Token>()
  for (const { token, tenant, cost, since, booked } of held) {
    alive.add(token)
    add(tenant, charge(cost, Math.max(now - since, booked), halfLife))
  }
  for (const { accounts, open } of records) {
    for (const [tenant, account] of Object.entries(accounts)) {
      add(tenant, decayed(account, now, halfLife))
    }
    for (const { token, tenant, cost, since, booked } of open) {
      if (alive.has(token)) continue
      const used = charge(cost, booked, halfLife)
      add(tenant, decayed({ used, at: since + booked }, now, halfLife))
    }
  }
  return usage
}
