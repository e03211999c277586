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

/** A record expires this many half-lives after its last write. By then it counts for nothing. */
const HALF_LIVES_KEPT = 10
/** Above this number, records without an open permit are merged. */
const RECORDS_KEPT = 8
/** Above this number, the oldest records are merged even if they have an open permit. */
const RECORDS_MAX = 64
const ACCOUNTS_MAX = 256
const KINDS_MAX = 64
const OPEN_MAX = 256

interface Written {
  readonly lease: LeaseId
  readonly token: Token
}

/**
 * Writes the usage record of one process: what its permits used, which are open, and how long each
 * kind of work was held. The record has its own lease that nobody renews, so it outlives the
 * process and expires when its content has decayed. A process that starts a record merges surplus
 * records into its own and ends their leases. So a pool has at most `RECORDS_MAX` records, and
 * about `RECORDS_KEPT` once all permits are returned.
 *
 * **Promised.** Usage is written before the resource is free, so the next decision counts it.
 * Writes run one at a time, and changes during a write share the next one.
 *
 * **Not promised.** Records serve fairness only, never safety. If the store does not answer,
 * changes wait for the next write. A process that dies leaves its permits charged as booked until
 * its record is merged. A process that dies while merging a record loses that record's content.
 */
export class UsageRecords {
  readonly #client: Client
  readonly #key: Key
  readonly #open = new Map<Token, OpenPermit>()
  /** What the store has, and what is to be added to it. */
  #record: UsageRecord = EMPTY_RECORD
  #unwritten: UsageRecord = EMPTY_RECORD
  #written: Written | undefined = undefined
  #writing: Promise<void> | undefined = undefined
  #nextWrite: Promise<void> | undefined = undefined
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

  /** The booking was extended. */
  extended(token: Token, booked: number): void {
    const permit = this.#open.get(token)
    if (permit === undefined) return
    this.#open.set(token, { ...permit, booked })
    void this.#write()
  }

  /** Resolves when the write succeeded or failed. `kind` gets the time it was held. */
  closed(
    permit: OpenPermit,
    kind: string | undefined,
    held: number,
    halfLife: number,
  ): Promise<void> {
    this.#halfLife = halfLife
    this.#open.delete(permit.token)
    const { accounts, kinds } = this.#unwritten
    const used: Account = { used: charge(permit.cost, held, halfLife), at: permit.since + held }
    this.#unwritten = {
      open: [],
      accounts: { ...accounts, [permit.tenant]: addTo(accounts[permit.tenant], used, halfLife) },
      kinds: kind === undefined ? kinds : { ...kinds, [kind]: observed(kinds[kind], held) },
    }
    return this.#write()
  }

  /** One write at a time. Changes during a write go into the next one. */
  #write(): Promise<void> {
    if (this.#writing === undefined) {
      this.#writing = this.#writeNow().finally(() => {
        this.#writing = undefined
      })
      return this.#writing
    }
    this.#nextWrite ??= this.#writing.then(() => {
      this.#nextWrite = undefined
      return this.#write()
    })
    return this.#nextWrite
  }

  async #writeNow(): Promise<void> {
    const unwritten = this.#unwritten
    this.#unwritten = EMPTY_RECORD
    try {
      const record = this.#sum(this.#record, unwritten)
      if (await this.#update(record)) {
        this.#record = record
        return
      }
      await this.#begin(this.#sum(EMPTY_RECORD, unwritten))
    } catch (error) {
      // The next write includes it.
      this.#unwritten = this.#sum(unwritten, this.#unwritten)
      return this.#warn(`the usage record could not be written: ${error}`, error)
    }
    try {
      await this.#mergeSurplus()
    } catch (error) {
      this.#warn(`old usage records could not be merged: ${error}`, error)
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

  /** Returns false if there is no record: none was written, or another process merged it. */
  async #update(record: UsageRecord): Promise<boolean> {
    if (this.#written === undefined) return false
    const { store } = this.#client
    const { lease, token } = this.#written
    try {
      await store.update({ lease, key: this.#key, token, value: this.#json(record) })
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
      claims: [{ key: this.#key, mode: 'shared', value: this.#json(record) }],
    })
    if (granted.outcome === 'busy') return
    this.#written = granted
    this.#record = record
  }

  #json(record: UsageRecord): string {
    return JSON.stringify({ ...record, open: [...this.#open.values()] })
  }

  /** Only one process succeeds in ending a lease, so each record is merged once. */
  async #mergeSurplus(): Promise<void> {
    const { store, holder } = this.#client
    const { claims, count } = await store.read({ key: this.#key, limit: 2 * RECORDS_MAX })
    const why = 'usage records of the pool are merged'
    for (const { lease, value } of surplusRecords(claims, count, this.#written?.token)) {
      try {
        await store.revoke({ target: { lease }, by: holder, why })
      } catch (error) {
        if (isGone(error)) continue
        throw error
      }
      // The process that holds an open permit writes it again, if it is alive.
      this.#unwritten = this.#sum(this.#unwritten, usageRecordFrom(value))
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
    // The kinds that were seen longest ago come first.
    const kept = Object.entries(kinds).slice(-KINDS_MAX)
    return {
      accounts: largest(accounts, this.#halfLife),
      kinds: Object.fromEntries(kept),
      open: [],
    }
  }
}

/** The records to merge, oldest first. */
function surplusRecords(claims: readonly Claim[], count: number, own: Token | undefined): Claim[] {
  const others = claims.filter(({ token }) => token !== own)
  const idle = others.filter(({ value }) => usageRecordFrom(value).open.length === 0)
  const merged = idle.slice(0, Math.max(0, count - RECORDS_KEPT))
  const busy = others.filter((claim) => !idle.includes(claim))
  return [...merged, ...busy.slice(0, Math.max(0, count - merged.length - RECORDS_MAX))]
}

function largest(accounts: Record<string, Account>, halfLife: number): Record<string, Account> {
  const all = Object.entries(accounts)
  if (all.length <= ACCOUNTS_MAX) return accounts
  const now = Math.max(...all.map(([, { at }]) => at))
  const left = (account: Account) => decayed(account, now, halfLife)
  all.sort(([, one], [, other]) => left(other) - left(one))
  return Object.fromEntries(all.slice(0, ACCOUNTS_MAX))
}
