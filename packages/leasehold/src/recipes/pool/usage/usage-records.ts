import type { Client } from '../../../client/index.ts'
import {
  type Claim,
  isLeaseholdError,
  type Key,
  type LeaseId,
  type Token,
} from '../../../port/index.ts'
import { isGone } from '../../refusals.ts'
import { added, observed } from './hold-times.ts'
import {
  type Account,
  addTo,
  charge,
  decayed,
  EMPTY_RECORD,
  type HoldTimes,
  type OpenPermit,
  type UsageRecord,
  usageRecordFrom,
} from './usage.ts'

/** A record is kept for so many half-lives after it was last written: then it counts for nothing. */
const HALF_LIVES_KEPT = 10
/** With more records than this, those without an open permit are put together. */
const RECORDS_KEPT = 8
/** With more records than this, the oldest are put together even if a permit in them is open. */
const RECORDS_MAX = 64
const ACCOUNTS_MAX = 256
const KINDS_MAX = 64
const OPEN_MAX = 256

interface Written {
  readonly lease: LeaseId
  readonly token: Token
}

/**
 * Writes the record of one process: what its permits used, which are open, and how long each kind of
 * work was held. It lies in the store under a lease of its own that nobody keeps: it outlives the
 * process and vanishes when what it says has decayed to nothing. A process that begins a record takes
 * over those that are too many, and ends their leases: however many processes come and go, a pool
 * has at most `RECORDS_MAX` records, and about `RECORDS_KEPT` once their permits were returned.
 *
 * **Promised.** What was returned is entered before the resource is free, so that whoever decides
 * next counts it. Entries wait for each other and travel together.
 *
 * **Not promised.** The records serve fairness only, never safety. Where the store does not answer,
 * entries stay here until the next one. A process that dies leaves its permits charged as booked,
 * until its record is taken over; one that dies while it takes over a record takes its entries with it.
 */
export class UsageRecords {
  readonly #client: Client
  readonly #key: Key
  readonly #open = new Map<Token, OpenPermit>()
  /** What stands in the store, and what is to be added to it. */
  #record: UsageRecord = EMPTY_RECORD
  #more: UsageRecord = EMPTY_RECORD
  #written: Written | undefined = undefined
  #writing: Promise<void> | undefined = undefined
  #waiting: Promise<void> | undefined = undefined
  #halfLife = 1

  constructor(client: Client, key: Key) {
    this.#client = client
    this.#key = key
  }

  opened(permit: OpenPermit, halfLife: number): void {
    this.#halfLife = halfLife
    if (this.#open.size >= OPEN_MAX) return
    this.#open.set(permit.token, permit)
    void this.#write()
  }

  /** Booked for longer than at first. */
  extended(token: Token, booked: number): void {
    const permit = this.#open.get(token)
    if (permit === undefined) return
    this.#open.set(token, { ...permit, booked })
    void this.#write()
  }

  /**
   * Fulfilled when it is written, or could not be: never rejected. With a kind, how long it was held
   * is remembered for it.
   */
  closed(
    permit: OpenPermit,
    kind: string | undefined,
    held: number,
    halfLife: number,
  ): Promise<void> {
    this.#halfLife = halfLife
    this.#open.delete(permit.token)
    const { accounts, kinds } = this.#more
    const used: Account = { used: charge(permit.cost, held, halfLife), at: permit.since + held }
    this.#more = {
      open: [],
      accounts: { ...accounts, [permit.tenant]: addTo(accounts[permit.tenant], used, halfLife) },
      kinds: kind === undefined ? kinds : { ...kinds, [kind]: observed(kinds[kind], held) },
    }
    return this.#write()
  }

  /** One write at a time; all that is entered during one goes into the next. */
  #write(): Promise<void> {
    if (this.#writing === undefined) {
      this.#writing = this.#writeNow().finally(() => {
        this.#writing = undefined
      })
      return this.#writing
    }
    this.#waiting ??= this.#writing.then(() => {
      this.#waiting = undefined
      return this.#write()
    })
    return this.#waiting
  }

  async #writeNow(): Promise<void> {
    const more = this.#more
    this.#more = EMPTY_RECORD
    try {
      const record = this.#sum(this.#record, more)
      if (await this.#update(record)) {
        this.#record = record
        return
      }
      await this.#begin(this.#sum(EMPTY_RECORD, more))
    } catch (error) {
      // It is entered with what comes next.
      this.#more = this.#sum(more, this.#more)
      return this.#warn(`the records could not be written: ${error}`, error)
    }
    try {
      await this.#takeOver()
    } catch (error) {
      this.#warn(`old records could not be put together: ${error}`, error)
    }
  }

  #warn(detail: string, error: unknown): void {
    if (isLeaseholdError(error, 'closed')) return
    this.#client.emit({
      recipe: 'pool',
      event: 'usage-record',
      key: this.#key,
      detail,
      level: 'warn',
    })
  }

  /** False where there is no record to update: there was none, or another process has taken it over. */
  async #update(record: UsageRecord): Promise<boolean> {
    if (this.#written === undefined) return false
    const { store } = this.#client
    const { lease, token } = this.#written
    try {
      await store.update({ lease, key: this.#key, token, value: this.#text(record) })
      await store.renew([lease])
      return true
    } catch (error) {
      if (!isGone(error)) throw error
      this.#written = undefined
      return false
    }
  }

  async #begin(record: UsageRecord): Promise<void> {
    const { store } = this.#client
    const { min, max } = store.guarantees.ttl
    const granted = await store.grant({
      holder: this.#client.holder,
      ttl: Math.ceil(Math.min(Math.max(this.#halfLife * HALF_LIVES_KEPT, min), max)),
      claims: [{ key: this.#key, mode: 'shared', value: this.#text(record) }],
    })
    if (granted.outcome === 'busy') return
    this.#written = granted
    this.#record = record
  }

  #text(record: UsageRecord): string {
    return JSON.stringify({ ...record, open: [...this.#open.values()] })
  }

  /** Ending a lease succeeds for one process only: so the entries of a book are taken over once. */
  async #takeOver(): Promise<void> {
    const { store, holder } = this.#client
    const { claims, count } = await store.read({ key: this.#key, limit: 2 * RECORDS_MAX })
    const why = 'the records of the pool are put together'
    for (const { lease, value } of tooMany(claims, count, this.#written?.token)) {
      try {
        await store.revoke({ target: { lease }, by: holder, why })
      } catch (error) {
        if (isGone(error)) continue
        throw error
      }
      // Permits that are open there are entered anew by their own process, if it lives.
      this.#more = this.#sum(this.#more, usageRecordFrom(value))
      void this.#write()
    }
  }

  #sum(a: UsageRecord, b: UsageRecord): UsageRecord {
    const accounts: Record<string, Account> = { ...a.accounts }
    for (const [tenant, account] of Object.entries(b.accounts)) {
      accounts[tenant] = addTo(accounts[tenant], account, this.#halfLife)
    }
    const kinds: Record<string, HoldTimes> = { ...a.kinds }
    for (const [kind, times] of Object.entries(b.kinds)) {
      const sum = added(kinds[kind], times)
      delete kinds[kind]
      kinds[kind] = sum
    }
    // Those that were seen longest ago stand first.
    const kept = Object.entries(kinds).slice(-KINDS_MAX)
    return {
      accounts: largest(accounts, this.#halfLife),
      kinds: Object.fromEntries(kept),
      open: [],
    }
  }
}

/** The records to take over, the oldest first. */
function tooMany(claims: readonly Claim[], count: number, own: Token | undefined): Claim[] {
  const others = claims.filter(({ token }) => token !== own)
  const idle = others.filter(({ value }) => usageRecordFrom(value).open.length === 0)
  const put = idle.slice(0, Math.max(0, count - RECORDS_KEPT))
  const busy = others.filter((claim) => !idle.includes(claim))
  return [...put, ...busy.slice(0, Math.max(0, count - put.length - RECORDS_MAX))]
}

function largest(accounts: Record<string, Account>, halfLife: number): Record<string, Account> {
  const all = Object.entries(accounts)
  if (all.length <= ACCOUNTS_MAX) return accounts
  const now = Math.max(...all.map(([, { at }]) => at))
  const left = (account: Account) => decayed(account, now, halfLife)
  all.sort(([, one], [, other]) => left(other) - left(one))
  return Object.fromEntries(all.slice(0, ACCOUNTS_MAX))
}
