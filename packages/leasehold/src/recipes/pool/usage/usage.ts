import type { Time, Token } from '../../../port/index.ts'
import { objectIn } from '../../json.ts'

/** What a tenant had used at a time: resources times milliseconds, of which older ones count less. */
export interface Account {
  readonly used: number
  readonly at: Time
}

/** A permit that was taken and has not been entered as returned. */
export interface OpenPermit {
  readonly token: Token
  readonly tenant: string
  readonly cost: number
  readonly since: Time
  readonly booked: number
}

/**
 * What one process has entered of its own permits. All records together are the pool's memory: each
 * is written by one process only, so that no two writers can undo each other's entries, and they
 * are added up by whoever reads.
 */
export interface UsageRecord {
  readonly accounts: Readonly<Record<string, Account>>
  readonly open: readonly OpenPermit[]
  /** How long work of each kind was held: see `hold-times.ts`. */
  readonly kinds: Readonly<Record<string, HoldTimes>>
}

/** How often something was held for about so long: the bucket's number, and how often. */
export type HoldTimes = Readonly<Record<number, number>>

export const EMPTY_RECORD: UsageRecord = { accounts: {}, open: [], kinds: {} }

/** Reads a record; one that cannot be read is empty. */
export function usageRecordFrom(text: string | undefined): UsageRecord {
  return { ...EMPTY_RECORD, ...(objectIn(text) as Partial<UsageRecord> | undefined) }
}

/** What is left now of an account. */
export function decayed({ used, at }: Account, now: Time, halfLife: number): number {
  return used * 2 ** (-Math.max(0, now - at) / halfLife)
}

/**
 * What holding `cost` resources for `held` milliseconds counts at the end of that time, the early
 * part of it less than the late.
 */
export function charge(cost: number, held: number, halfLife: number): number {
  const mean = halfLife / Math.LN2
  return cost * mean * (1 - 2 ** (-Math.max(0, held) / halfLife))
}

export function addTo(account: Account | undefined, more: Account, halfLife: number): Account {
  if (account === undefined) return more
  const at = Math.max(account.at, more.at)
  return { used: decayed(account, at, halfLife) + decayed(more, at, halfLife), at }
}

/** What is held now, as far as usage is concerned. */
export type Held = Pick<OpenPermit, 'token' | 'tenant' | 'cost' | 'since' | 'booked'>

/**
 * What each tenant has used and has booked, as of `now`.
 *
 * A permit counts for what was booked, or for as long as it has been held where that is longer: so
 * who takes much at once is behind at once, and not only when the time has passed. A permit that
 * was entered and is gone without a further entry (its process died) counts for what was booked.
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
