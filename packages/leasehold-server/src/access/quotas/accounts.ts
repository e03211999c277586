import type {
  Busy,
  Claimed,
  ClaimRequest,
  Clock,
  Granted,
  LeaseId,
  LeaseReading,
  LeaseStore,
} from 'leasehold/port'
import { Account, Pace, type Wanted } from './account.ts'
import { ownerOf } from './owner-label.ts'
import type { Quota, Usage } from './quota.ts'

/** The page size of a count, small enough not to block the server. */
const PAGE = 1000
/** If the last count took longer, principals with a count do not wait for the next. */
const WAIT_MAX_MS = 100
const CLAIMS_MAX = 10_000

type Found = { readonly claims: number; readonly tag: string | undefined }
type Tracked = { readonly leases: Map<LeaseId, Found>; claims: number; count: number }

/**
 * The leases and claims of all principals, for their quotas.
 *
 * A label on every lease names its principal, and the lease's claims count for that principal. One
 * read of all leases therefore gives all counts: at the first call after a start, and repeatedly
 * while there are calls, because another server may grant leases on the same store. Counting takes at
 * most 1/20 of the time. Between two counts, this server adds its own grants. Individual leases are
 * remembered only for principals with a quota on leases or claims.
 */
export class Accounts {
  readonly #store: LeaseStore
  readonly #clock: Clock
  readonly #quotaOf: (name: string) => Quota | undefined
  readonly #accounts = new Map<string, Account>()
  /** The account of each remembered lease. */
  readonly #payers = new Map<LeaseId, Account>()
  readonly #pace = new Pace()
  #counting: Promise<void> | undefined

  constructor(store: LeaseStore, clock: Clock, quotaOf: (name: string) => Quota | undefined) {
    this.#store = store
    this.#clock = clock
    this.#quotaOf = quotaOf
  }

  of(name: string): Account {
    let account = this.#accounts.get(name)
    if (account === undefined) {
      account = new Account(name)
      this.#accounts.set(name, account)
    }
    return account
  }

  usage(): ReadonlyMap<string, Usage> {
    return new Map([...this.#accounts].map(([name, { usage }]) => [name, usage]))
  }

  /** Updates all counts, unless they are recent. */
  async refresh(): Promise<void> {
    for (const account of this.#accounts.values()) await this.#readStale(account)
    if (this.#pace.isDue(this.#clock)) await this.#count()
  }

  isLimited(name: string): boolean {
    const quota = this.#quotaOf(name)
    return quota?.leases !== undefined || quota?.claims !== undefined
  }

  /** Performs a grant if the quota allows it, or if it repeats an earlier one. */
  async grant(
    account: Account,
    claims: number,
    tag: string | undefined,
    call: () => Promise<Granted | Busy>,
  ): Promise<Granted | Busy> {
    if (!this.isLimited(account.name)) return call()
    const wanted = { leases: 1, claims }
    await this.#prepare(account, wanted)
    const excess = this.#excess(account, wanted)
    if (excess !== undefined && !isGrantedBy(account, tag)) throw refused(account, excess)
    return account.reserve(excess === undefined ? wanted : NOTHING, async () => {
      const answer = await call()
      if (answer.outcome === 'granted') {
        if (!account.leases.has(answer.lease)) this.#set(account, answer.lease, claims, tag)
        account.touch(answer.lease)
      }
      return answer
    })
  }

  /** Performs a claim if the quota of the lease's owner allows it, or if it repeats one. */
  async claim(
    account: Account,
    { lease, claims, replaces, request }: ClaimRequest,
    call: () => Promise<Claimed | Busy>,
  ): Promise<Claimed | Busy> {
    const payer = await this.#payerOf(lease, account)
    if (payer === undefined) return call()
    const wanted = { leases: 0, claims: replaces === undefined ? claims.length : 0 }
    await this.#prepare(payer, wanted)
    const excess = this.#excess(payer, wanted)
    if (excess === undefined) {
      return payer.reserve(wanted, async () => {
        const answer = await call()
        if (answer.outcome === 'claimed') payer.touch(lease, wanted.claims)
        return answer
      })
    }
    const reading = await this.#store.read({ lease, limit: CLAIMS_MAX })
    const keys = claims.map(({ key }) => key)
    if (request === undefined || !hasAll(reading, keys)) throw refused(payer, excess)
    // The lease already has these keys, so this may be a repeated request.
    const answer = await call()
    if (answer.outcome === 'busy' || answer.revision <= reading.revision) return answer
    payer.touch(lease, keys.length)
    await this.#store.release({ lease, keys, token: answer.token })
    throw refused(payer, excess)
  }

  /** A call used a lease, and may have released claims or ended it. */
  touch(lease: LeaseId): void {
    this.#payers.get(lease)?.touch(lease)
  }

  /** A lease has ended. */
  forget(lease: LeaseId): void {
    this.#payers.get(lease)?.forget(lease)
    this.#payers.delete(lease)
  }

  /** The account that pays for claims on this lease, if it has a quota. */
  async #payerOf(lease: LeaseId, caller: Account): Promise<Account | undefined> {
    const payer = this.#payers.get(lease)
    if (payer !== undefined) return this.isLimited(payer.name) ? payer : undefined
    if (!this.isLimited(caller.name)) return undefined
    // Another server granted it since the last count, or another principal owns it.
    const { lease: found } = await this.#store.read({ lease, limit: 1 })
    const owner = found && ownerOf(found)
    if (owner === undefined || !this.isLimited(owner.name)) return undefined
    const account = this.of(owner.name)
    this.#set(account, lease, found!.claims, owner.tag)
    return account
  }

  #excess(account: Account, wanted: Wanted): Error | undefined {
    return account.excess(this.#quotaOf(account.name) ?? {}, wanted)
  }

  /** Updates an account as far as needed to decide whether the quota allows a call. */
  async #prepare(account: Account, wanted: Wanted): Promise<void> {
    if (!account.isCounted || this.#pace.isDue(this.#clock)) {
      const counting = this.#count()
      if (account.isCounted && this.#pace.took > WAIT_MAX_MS) counting.catch(() => {})
      else await counting
    }
    if (this.#excess(account, wanted) === undefined) return
    await this.#readStale(account)
    if (this.#excess(account, wanted) === undefined || !account.pace.isDue(this.#clock)) return
    // Leases also expire, and others may end them.
    await account.pace.time(this.#clock, () => this.#readEach(account, account.leases.keys()))
  }

  #readStale(account: Account): Promise<void> {
    return this.#readEach(account, account.stale)
  }

  async #readEach(account: Account, leases: Iterable<LeaseId>): Promise<void> {
    for (const lease of [...leases]) {
      const counted = account.leases.get(lease)
      if (counted === undefined) continue
      const { version, tag } = counted
      const { lease: found } = await this.#store.read({ lease, limit: 1 })
      if (account.leases.get(lease) !== counted || counted.version !== version) continue
      if (found === undefined) this.forget(lease)
      else account.set(lease, found.claims, tag)
      account.stale.delete(lease)
    }
  }

  /** Reads all leases. Concurrent callers share one count. */
  #count(): Promise<void> {
    this.#counting ??= this.#pace
      .time(this.#clock, () => this.#countAll())
      .finally(() => {
        this.#counting = undefined
      })
    return this.#counting
  }

  async #countAll(): Promise<void> {
    const before = this.#versions()
    const found = new Map<string, Tracked>()
    let after: LeaseId | undefined
    for (;;) {
      const page = await this.#store.read({ leases: true, after, limit: PAGE })
      for (const lease of page.leases) {
        const owner = ownerOf(lease)
        if (owner === undefined) continue
        const tracked = found.get(owner.name) ?? { leases: new Map(), claims: 0, count: 0 }
        found.set(owner.name, tracked)
        tracked.count++
        tracked.claims += lease.claims
        const { claims } = lease
        if (this.isLimited(owner.name)) tracked.leases.set(lease.id, { claims, tag: owner.tag })
      }
      after = page.leases.at(-1)?.id
      if (!page.more) break
    }
    for (const name of found.keys()) this.of(name)
    for (const account of this.#accounts.values()) {
      this.#take(account, found.get(account.name), before)
    }
  }

  /** Applies the count of one principal, except for leases that were used meanwhile. */
  #take(account: Account, found: Tracked | undefined, before: ReadonlyMap<LeaseId, number>): void {
    const isLimited = this.isLimited(account.name)
    account.isCounted = isLimited
    for (const [lease, { version }] of [...account.leases]) {
      const isSame = before.get(lease) === version
      if (!isLimited || (isSame && !found?.leases.has(lease))) this.forget(lease)
    }
    if (!isLimited) {
      account.usage.leases = found?.count ?? 0
      account.usage.claims = found?.claims ?? 0
      return
    }
    for (const [id, { claims, tag }] of found?.leases ?? []) {
      const counted = account.leases.get(id)
      if (counted !== undefined && before.get(id) !== counted.version) continue
      this.#set(account, id, claims, tag)
    }
    account.sum()
  }

  #versions(): ReadonlyMap<LeaseId, number> {
    const versions = new Map<LeaseId, number>()
    for (const { leases } of this.#accounts.values()) {
      for (const [lease, { version }] of leases) versions.set(lease, version)
    }
    return versions
  }

  #set(account: Account, lease: LeaseId, claims: number, tag: string | undefined): void {
    this.#payers.set(lease, account)
    account.set(lease, claims, tag)
  }
}

const NOTHING: Wanted = { leases: 0, claims: 0 }

function refused(account: Account, excess: Error): Error {
  account.usage.refused++
  return excess
}

function isGrantedBy(account: Account, tag: string | undefined): boolean {
  if (tag === undefined) return false
  return [...account.leases.values()].some((counted) => counted.tag === tag)
}

function hasAll({ claims }: LeaseReading, keys: readonly string[]): boolean {
  const own = new Set(claims.map(({ key }) => key))
  return keys.every((key) => own.has(key))
}
