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

/** Leases in one reading of a count, so that no reading holds up the server. */
const PAGE = 1000
/** A count that takes longer than this is not waited for by those who were counted before. */
const WAIT_MAX_MS = 100
const CLAIMS_MAX = 10_000

type Found = { readonly claims: number; readonly tag: string | undefined }
type Tracked = { readonly leases: Map<LeaseId, Found>; claims: number; count: number }

/**
 * What all principals have, against their quotas.
 *
 * Every lease says in a label whose it is, and its claims count for that principal, whoever made
 * them. So one reading of all leases gives every count anew: at the first call after a start, and
 * again while there are calls, because a second server may grant leases on the same store. Counting
 * takes at most a twentieth of the time. Between two counts this server adds what it grants itself.
 * Only the leases of principals with a quota on leases or claims are remembered one by one.
 */
export class Accounts {
  readonly #store: LeaseStore
  readonly #clock: Clock
  readonly #quotaOf: (name: string) => Quota | undefined
  readonly #accounts = new Map<string, Account>()
  /** The account of each lease that is remembered. */
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

  /** Brings all counts up to date, unless they are recent. */
  async refresh(): Promise<void> {
    for (const account of this.#accounts.values()) await this.#readStale(account)
    if (this.#pace.isDue(this.#clock)) await this.#count()
  }

  isLimited(name: string): boolean {
    const quota = this.#quotaOf(name)
    return quota?.leases !== undefined || quota?.claims !== undefined
  }

  /** Carries out a grant if its principal has room for it, or if it was carried out before. */
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

  /** Carries out a claim if the principal whose lease it is has room for it, or did so before. */
  async claim(
    account: Account,
    { lease, claims, request }: ClaimRequest,
    call: () => Promise<Claimed | Busy>,
  ): Promise<Claimed | Busy> {
    const payer = await this.#payerOf(lease, account)
    if (payer === undefined) return call()
    const wanted = { leases: 0, claims: claims.length }
    await this.#prepare(payer, wanted)
    const excess = this.#excess(payer, wanted)
    if (excess === undefined) {
      return payer.reserve(wanted, async () => {
        const answer = await call()
        if (answer.outcome === 'claimed') payer.touch(lease, claims.length)
        return answer
      })
    }
    const reading = await this.#store.read({ lease, limit: CLAIMS_MAX })
    const keys = claims.map(({ key }) => key)
    if (request === undefined || !hasAll(reading, keys)) throw refused(payer, excess)
    // The lease has these keys already, so this may be a request that is sent again.
    const answer = await call()
    if (answer.outcome === 'busy' || answer.revision <= reading.revision) return answer
    payer.touch(lease, keys.length)
    await this.#store.release({ lease, keys, token: answer.token })
    throw refused(payer, excess)
  }

  /** A call has used a lease, and may have released claims or ended it. */
  touch(lease: LeaseId): void {
    this.#payers.get(lease)?.touch(lease)
  }

  /** The store says that a lease has ended. */
  forget(lease: LeaseId): void {
    this.#payers.get(lease)?.forget(lease)
    this.#payers.delete(lease)
  }

  /** Whose quota claims on this lease count for, if that principal has one. */
  async #payerOf(lease: LeaseId, caller: Account): Promise<Account | undefined> {
    const payer = this.#payers.get(lease)
    if (payer !== undefined) return this.isLimited(payer.name) ? payer : undefined
    if (!this.isLimited(caller.name)) return undefined
    // Another server granted it since the last count, or it is the lease of another principal.
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

  /** Brings an account up to date, as far as that is needed to say whether there is room. */
  async #prepare(account: Account, wanted: Wanted): Promise<void> {
    if (!account.isCounted || this.#pace.isDue(this.#clock)) {
      const counting = this.#count()
      if (account.isCounted && this.#pace.took > WAIT_MAX_MS) counting.catch(() => {})
      else await counting
    }
    if (this.#excess(account, wanted) === undefined) return
    await this.#readStale(account)
    if (this.#excess(account, wanted) === undefined || !account.pace.isDue(this.#clock)) return
    // Leases end by themselves too, and by what others do.
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

  /** Reads all leases; a count that is under way serves all who ask for one. */
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

  /** Takes over what was found of one principal, but for what was used while it was read. */
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
