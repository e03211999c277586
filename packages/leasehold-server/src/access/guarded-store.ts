// long because every operation passes here: it is the one place where rights are decided.
import { createHash } from 'node:crypto'
import {
  type Busy,
  type Changed,
  type Claimed,
  type ClaimRequest,
  type ClaimSpec,
  type Clock,
  type Complaint,
  checkClaim,
  checkGrant,
  checkQuery,
  checkRelease,
  checkRenew,
  checkRevoke,
  checkUpdate,
  checkWatch,
  type Granted,
  type GrantRequest,
  type Guarantees,
  invalid,
  isLeaseholdError,
  type Key,
  LeaseholdError,
  type LeaseId,
  type LeaseReading,
  type LeaseStore,
  type Limits,
  type Observer,
  type Query,
  type Reading,
  type ReleaseRequest,
  type Renewed,
  type Revoked,
  type RevokeRequest,
  type RevokeTarget,
  show,
  type UpdateRequest,
  type Watch,
  type WatchTarget,
} from 'leasehold/port'
import type { Account } from './account.ts'
import type { Accounts } from './accounts.ts'
import type { Audit } from './audit.ts'
import { GuardedWatch } from './guarded-watch.ts'
import { type Ending, LeaseGate, onLease, type Passed, withoutReason } from './lease-gate.ts'
import { readWithoutOwn, withoutOwn } from './own-keys.ts'
import { labelled, tagOf, withoutOwner } from './owner-label.ts'
import type { Principal } from './principal.ts'
import { checkTtl, checkValue, exceeded } from './quota.ts'
import { allows, allowsKey, allowsOthers, allowsSomewhere, forbidden, type Verb } from './rights.ts'
import type { LeaseSecrets } from './secrets.ts'
import { shownAnswer, shownNotice } from './sight.ts'
import { notWithdrawn, type ServerActs, serverActs, withdrawWaiting } from './withdrawal.ts'

export interface Surroundings {
  readonly store: LeaseStore
  readonly limits: Limits
  readonly secrets: LeaseSecrets
  readonly audit: Audit
  readonly clock: Clock
  readonly accounts: Accounts
}

/** So many signed ids are remembered; one that is forgotten costs a hash. */
const KNOWN_MAX = 1_000_000

/**
 * The store as one principal may use it. Everything that reaches the store over the network comes
 * through here, whatever it came by, so this is the one place where rights are decided: what may
 * be done, and what an answer or a notice may show.
 *
 * Leases have two forms here. Whoever is granted one gets its id with a secret behind it; everybody
 * else sees the plain id. With the secret a lease can be used by anyone who has it; without, only by
 * those who have the right to all of its keys.
 */
export class GuardedStore implements LeaseStore {
  readonly #around: Surroundings
  readonly #who: Principal
  readonly #account: Account
  readonly #gate: LeaseGate
  readonly #from: string | undefined
  /** The label of one's own must fit too. */
  readonly #limits: Limits
  /** Signed ids that were looked at before: a heartbeat must not cost a hash for each lease. */
  #known = new Map<LeaseId, LeaseId>()
  readonly #watches = new Set<GuardedWatch>()
  #left = false

  constructor(around: Surroundings, who: Principal, from?: string) {
    this.#from = from
    const { store, secrets, accounts, limits } = around
    this.#around = around
    this.#who = who
    this.#account = accounts.of(who.name)
    this.#gate = new LeaseGate(store, secrets, who)
    this.#limits = { ...limits, labels: limits.labels - 1 }
  }

  get guarantees(): Guarantees {
    return this.#around.store.guarantees
  }

  /** What the server does with this principal's leases on its own account. */
  get acts(): ServerActs {
    const { store, secrets } = this.#around
    const plain = (lease: LeaseId) => secrets.open(lease).lease
    return serverActs(store, plain, (lease) => this.#forget(lease))
  }

  async grant(request: GrantRequest): Promise<Granted | Busy> {
    this.#call(checkGrant(request, this.#limits))
    const { store, accounts } = this.#around
    const { claims = [], parent } = request
    const { name, quota, rights } = this.#who
    if (claims.length === 0 && !allowsSomewhere(rights, 'claim')) throw forbidden(name, 'claim', '')
    this.#mayClaim(claims)
    checkTtl(name, quota, request.ttl)
    const passed = parent === undefined ? undefined : await this.#lease(parent, 'renew')
    const own = this.#own('grant', request)
    const tag = accounts.isLimited(name) ? tagOf(own.request) : undefined
    const labels = labelled(request, { name, tag })
    const call = () => store.grant({ ...request, ...own, labels, parent: passed?.lease })
    const granting = accounts.grant(this.#account, claims.length, tag, call)
    const answer = shownAnswer(this.#who, await (passed ? onLease(passed, granting) : granting))
    if (answer.outcome === 'busy') return answer
    if (!answer.holds) await this.#queued(answer.lease)
    return { ...answer, lease: this.#sign(answer.lease) }
  }

  async renew(leases: readonly LeaseId[]): Promise<Renewed> {
    this.#call(checkRenew(leases, this.#limits))
    const plain: LeaseId[] = []
    const given = new Map<LeaseId, LeaseId>()
    const hidden = new Set<LeaseId>()
    for (const asked of leases) {
      // Most leases are known, and there may be many: only the others are waited for.
      const known = this.#known.get(asked)
      const passed = known === undefined ? await this.#lease(asked, 'renew') : undefined
      if (this.#left) throw new LeaseholdError('closed', 'whoever asked has gone')
      const lease = known ?? passed!.lease
      plain.push(lease)
      if (lease !== asked) given.set(lease, asked)
      if (passed?.hidesReason) hidden.add(lease)
    }
    const { lost, capped } = await this.#around.store.renew(plain)
    for (const { lease } of lost) this.#forget(lease)
    // Whoever asked by a signed id is answered by it.
    const named = <Entry extends { readonly lease: LeaseId }>(entry: Entry): Entry => ({
      ...entry,
      lease: given.get(entry.lease) ?? entry.lease,
    })
    const told = lost.map((entry) =>
      hidden.has(entry.lease) ? { ...entry, end: withoutReason(entry.end) } : entry,
    )
    return { lost: told.map(named), capped: capped.map(named) }
  }

  async revoke(request: RevokeRequest): Promise<Revoked> {
    this.#call(checkRevoke(request, this.#limits))
    const { store, accounts } = this.#around
    const { target, by = this.#who.name, why } = request
    const own = this.#gate.ownTarget(target)
    const { target: plain, passed } = own ?? (await this.#forcedTarget(target, why))
    // Nobody can put what they did on another's name.
    const named = own === undefined ? this.#who.name : by
    const record = (outcome: string) => {
      if (own === undefined) this.#record('revoke', plain, why, outcome)
    }
    try {
      const scoped = this.#own('revoke', request)
      const revoking = store.revoke({ ...request, ...scoped, target: plain, by: named })
      const answer = await (passed ? onLease(passed, revoking) : revoking)
      if ('lease' in plain) accounts.touch(plain.lease)
      record('done')
      return answer
    } catch (error) {
      record(codeOf(error))
      throw error
    }
  }

  async claim(request: ClaimRequest): Promise<Claimed | Busy> {
    this.#call(checkClaim(request, this.#limits))
    this.#mayClaim(request.claims)
    const { store, accounts } = this.#around
    const passed = await this.#lease(request.lease, 'renew')
    const own = { ...request, ...this.#own('claim', request), lease: passed.lease }
    const claiming = accounts.claim(this.#account, own, () => store.claim(own))
    const answer = shownAnswer(this.#who, await onLease(passed, claiming))
    if (answer.outcome === 'claimed' && !answer.holds) await this.#queued(passed.lease)
    return answer
  }

  async release(request: ReleaseRequest): Promise<Changed> {
    this.#call(checkRelease(request, this.#limits))
    const { store, accounts } = this.#around
    const passed = await this.#lease(request.lease, 'release')
    const { lease } = passed
    const own = { ...request, ...this.#own('release', request), lease }
    const answer = await onLease(passed, store.release(own))
    accounts.touch(lease)
    return answer
  }

  async update(request: UpdateRequest): Promise<Changed> {
    this.#call(checkUpdate(request, this.#limits))
    this.#demandKey('claim', request.key)
    checkValue(this.#who.name, this.#who.quota, request.value)
    const passed = await this.#lease(request.lease, 'renew')
    const own = { ...request, ...this.#own('update', request), lease: passed.lease }
    return onLease(passed, this.#around.store.update(own))
  }

  async read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    this.#call(checkQuery(query, this.#limits))
    const { store } = this.#around
    const { rights, name } = this.#who
    const asked: Query = query
    if ('lease' in asked) return this.#readLease(asked) as Promise<Reading<Q>>
    if ('key' in asked || 'history' in asked) {
      this.#demandKey('read', 'key' in asked ? asked.key : asked.history)
      return store.read(query)
    }
    const prefix = 'prefix' in asked ? asked.prefix : ''
    const mayAll = allows(rights, 'read', prefix)
    if (!mayAll && !allowsOthers(rights, 'read', prefix)) throw forbidden(name, 'read', prefix)
    if ('leases' in asked) {
      const reading = await store.read(asked)
      return { ...reading, leases: reading.leases.map(withoutOwner) } as unknown as Reading<Q>
    }
    return (mayAll ? store.read(asked) : readWithoutOwn(store, asked)) as Promise<Reading<Q>>
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    this.#call(checkWatch(target, observer, this.#limits))
    const { name, quota } = this.#who
    if (quota.watches !== undefined && this.#account.usage.watches >= quota.watches) {
      throw exceeded(name, `${quota.watches} watches at a time`, 'close one first')
    }
    const watch = new GuardedWatch(observer, () => {
      this.#watches.delete(watch)
      this.#account.usage.watches--
    })
    watch.may = () => this.#mayWatch(target)
    const refusal = watch.may()
    if (refusal !== undefined) throw refusal
    // Counted before it is opened: it may end at once.
    this.#watches.add(watch)
    this.#account.usage.watches++
    try {
      this.#openWatch(watch, target)
    } catch (error) {
      watch.close()
      throw error
    }
    return watch
  }

  /** The principal's rights have changed: what it watches and may not any more is ended. */
  rightsChanged(): void {
    for (const watch of [...this.#watches]) {
      const error = watch.may()
      if (error !== undefined) watch.refuse(error)
    }
  }

  /** Nothing more is carried out here. The store itself stays open. */
  async close(): Promise<void> {
    this.#left = true
    for (const watch of [...this.#watches]) watch.close()
  }

  /** What every call begins with: it is refused where it is wrong in itself, or one too many. */
  #call(complaint: Complaint): void {
    const { name, ended, quota } = this.#who
    if (complaint !== undefined) throw LeaseholdError.from(complaint)
    if (ended !== undefined) throw new LeaseholdError('unauthenticated', `${show(name)}: ${ended}`)
    this.#account.usage.call(name, quota, this.#around.clock)
  }

  /**
   * A request id is its principal's own, and names one operation: whoever repeats another's must not
   * get its answer, nor a grant the answer of a claim.
   */
  #own(
    operation: string,
    { request }: { readonly request?: string | undefined },
  ): { readonly request?: string } {
    if (request === undefined) return {}
    const scoped = createHash('sha256').update(JSON.stringify([this.#who.name, operation, request]))
    return { request: scoped.digest('base64url') }
  }

  #mayWatch(target: WatchTarget): LeaseholdError | undefined {
    const { name, rights } = this.#who
    if (!('prefix' in target) || allowsOthers(rights, 'watch', target.prefix)) return undefined
    if (allows(rights, 'watch', target.prefix)) return undefined
    return forbidden(name, 'watch', target.prefix)
  }

  #openWatch(watch: GuardedWatch, target: WatchTarget): void {
    const { store } = this.#around
    if ('prefix' in target) {
      const mayAll = () => allows(this.#who.rights, 'watch', target.prefix)
      watch.show = (notice) => (mayAll() ? notice : withoutOwn(notice))
      watch.open(store, target)
      return
    }
    const known = this.#known.get(target.lease)
    if (known !== undefined) {
      watch.open(store, { lease: known })
      return
    }
    this.#lease(target.lease, 'watch')
      .then((passed) => {
        if (passed.reading !== undefined)
          watch.show = (notice) => shownNotice(store, this.#who, passed, notice)
        watch.open(store, { lease: passed.lease })
      })
      .catch((error) => watch.refuse(error))
  }

  #demandKey(verb: Verb, key: Key): void {
    const { name, rights } = this.#who
    if (!allowsKey(rights, verb, key)) throw forbidden(name, verb, key)
  }

  #mayClaim(claims: readonly ClaimSpec[]): void {
    for (const { key, value } of claims) {
      this.#demandKey('claim', key)
      checkValue(this.#who.name, this.#who.quota, value)
    }
  }

  async #readLease(asked: Extract<Query, { readonly lease: LeaseId }>): Promise<LeaseReading> {
    const { lease, reading, hidesReason } = await this.#lease(asked.lease, 'read')
    const found = reading ?? (await this.#around.store.read({ ...asked, lease }))
    return {
      ...found,
      lease: found.lease && withoutOwner(found.lease),
      // What was looked at is what is shown: the lease may have other keys by now.
      claims: found.claims.slice(0, asked.limit),
      end: hidesReason ? withoutReason(found.end) : found.end,
    }
  }

  /** The plain id of a lease, if it may be used in this way: by its secret, or by its keys. */
  async #lease(given: LeaseId, verb: 'renew' | 'release' | 'read' | 'watch'): Promise<Passed> {
    const known = this.#known.get(given)
    if (known !== undefined) return { lease: known, hidesReason: false }
    await this.#account.lookUp(this.#around.clock)
    try {
      const passed = await this.#gate.pass(given, verb)
      if (passed.isProven && this.#known.size < KNOWN_MAX) this.#known.set(given, passed.lease)
      return passed
    } catch (error) {
      if (isLeaseholdError(error, 'forbidden')) {
        this.#record(verb, { lease: given }, undefined, error.code)
      }
      throw error
    }
  }

  /** Ending what others hold takes the right to it, and a reason that is written down. */
  async #forcedTarget(target: RevokeTarget, why: string | undefined): Promise<Ending> {
    try {
      const ending = await this.#gate.mayEnd(target)
      if (why === undefined || why.trim() === '') {
        throw invalid(
          'ending what others hold needs a reason: say why, it is told to them and kept',
        )
      }
      return ending
    } catch (error) {
      this.#record('revoke', target, why, codeOf(error))
      throw error
    }
  }

  /** A claim waits. If the access token ended while it was made, it is withdrawn, and then refused. */
  async #queued(lease: LeaseId): Promise<void> {
    const { ended } = this.#who
    this.#account.queued(lease)
    if (ended === undefined) return
    await withdrawWaiting(this.#around.store, [lease], ended).catch((error) => {
      throw notWithdrawn(error)
    })
    throw new LeaseholdError('unauthenticated', ended)
  }

  #forget(lease: LeaseId): void {
    this.#around.accounts.forget(lease)
    this.#known.delete(this.#around.secrets.sign(lease))
  }

  #sign(lease: LeaseId): LeaseId {
    if (this.#known.size >= KNOWN_MAX) this.#known = new Map()
    const signed = this.#around.secrets.sign(lease)
    this.#known.set(signed, lease)
    return signed
  }

  #record(action: string, target: unknown, why: string | undefined, outcome: string): void {
    const by = this.#who.name
    this.#around.audit.record({ action, by, from: this.#from, target, why, outcome })
  }
}

function codeOf(error: unknown): string {
  return isLeaseholdError(error) ? error.code : 'unknown-outcome'
}
