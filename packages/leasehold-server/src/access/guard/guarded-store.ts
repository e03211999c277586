// long because every operation passes here: it is the one place that decides rights.
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
import type { Audit } from '../audit/audit.ts'
import type { Principal } from '../identity/principal.ts'
import type { Account } from '../quotas/account.ts'
import type { Accounts } from '../quotas/accounts.ts'
import { labelled, tagOf, withoutOwner } from '../quotas/owner-label.ts'
import { checkTtl, checkValue, exceeded } from '../quotas/quota.ts'
import {
  allows,
  allowsKey,
  allowsOthers,
  allowsSomewhere,
  forbidden,
  type Verb,
} from '../rights.ts'
import { GuardedWatch } from './guarded-watch.ts'
import {
  type AllowedLease,
  type AllowedTarget,
  LeaseAccess,
  onLease,
  withoutReason,
} from './lease-access.ts'
import type { LeaseSecrets } from './lease-secrets.ts'
import {
  createServerActions,
  notWithdrawn,
  type ServerActions,
  withdrawWaiting,
} from './server-actions.ts'
import { readWithoutServerKeys, withoutServerKeys } from './server-keys.ts'
import { visibleAnswer, visibleNotice } from './visibility.ts'

export interface GuardDependencies {
  readonly store: LeaseStore
  readonly limits: Limits
  readonly secrets: LeaseSecrets
  readonly audit: Audit
  readonly clock: Clock
  readonly accounts: Accounts
}

/** The most signed ids to remember; an unknown one costs a hash. */
const KNOWN_MAX = 1_000_000

/**
 * The store as one principal may use it. Every call from the network passes here, on every protocol,
 * so this is the one place that decides rights: what a call may do, and what an answer or a notice
 * may show.
 *
 * A lease id has two forms. The holder receives it with a secret; everybody else sees the plain id.
 * With the secret, anyone can use the lease. Without it, the caller needs the right to all its keys.
 */
export class GuardedStore implements LeaseStore {
  readonly #dependencies: GuardDependencies
  readonly #principal: Principal
  readonly #account: Account
  readonly #leaseAccess: LeaseAccess
  readonly #from: string | undefined
  /** One label less, because the server adds its own. */
  readonly #limits: Limits
  /** Signed ids that were verified before: a heartbeat must not cost a hash per lease. */
  #known = new Map<LeaseId, LeaseId>()
  readonly #watches = new Set<GuardedWatch>()
  #left = false

  constructor(dependencies: GuardDependencies, principal: Principal, from?: string) {
    this.#from = from
    const { store, secrets, accounts, limits } = dependencies
    this.#dependencies = dependencies
    this.#principal = principal
    this.#account = accounts.of(principal.name)
    this.#leaseAccess = new LeaseAccess(store, secrets, principal)
    this.#limits = { ...limits, labels: limits.labels - 1 }
  }

  get guarantees(): Guarantees {
    return this.#dependencies.store.guarantees
  }

  /** The server's own actions on this principal's leases. */
  get serverActions(): ServerActions {
    const { store, secrets } = this.#dependencies
    const plain = (lease: LeaseId) => secrets.open(lease).lease
    return createServerActions(store, plain, (lease) => this.#forget(lease))
  }

  async grant(request: GrantRequest): Promise<Granted | Busy> {
    this.#call(checkGrant(request, this.#limits))
    const { store, accounts } = this.#dependencies
    const { claims = [], parent } = request
    const { name, quota, rights } = this.#principal
    if (claims.length === 0 && !allowsSomewhere(rights, 'claim')) throw forbidden(name, 'claim', '')
    this.#mayClaim(claims)
    checkTtl(name, quota, request.ttl)
    const passed = parent === undefined ? undefined : await this.#lease(parent, 'renew')
    const own = this.#own('grant', request)
    const tag = accounts.isLimited(name) ? tagOf(own.request) : undefined
    const labels = labelled(request, { name, tag })
    const call = () => store.grant({ ...request, ...own, labels, parent: passed?.lease })
    const granting = accounts.grant(this.#account, claims.length, tag, call)
    const answer = visibleAnswer(
      this.#principal,
      await (passed ? onLease(passed, granting) : granting),
    )
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
      // Most leases are known: only the others are awaited.
      const known = this.#known.get(asked)
      const passed = known === undefined ? await this.#lease(asked, 'renew') : undefined
      if (this.#left) throw new LeaseholdError('closed', 'the caller has gone')
      const lease = known ?? passed!.lease
      plain.push(lease)
      if (lease !== asked) given.set(lease, asked)
      if (passed?.hidesReason) hidden.add(lease)
    }
    const { lost, capped } = await this.#dependencies.store.renew(plain)
    for (const { lease } of lost) this.#forget(lease)
    // Answer with the id that the caller used.
    const named = <Entry extends { readonly lease: LeaseId }>(entry: Entry): Entry => ({
      ...entry,
      lease: given.get(entry.lease) ?? entry.lease,
    })
    const visible = lost.map((entry) =>
      hidden.has(entry.lease) ? { ...entry, end: withoutReason(entry.end) } : entry,
    )
    return { lost: visible.map(named), capped: capped.map(named) }
  }

  async revoke(request: RevokeRequest): Promise<Revoked> {
    this.#call(checkRevoke(request, this.#limits))
    const { store, accounts } = this.#dependencies
    const { target, by = this.#principal.name, why } = request
    const own = this.#leaseAccess.ownTarget(target)
    const { target: plain, passed } = own ?? (await this.#forcedTarget(target, why))
    // A principal cannot act in another's name.
    const named = own === undefined ? this.#principal.name : by
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
    const { store, accounts } = this.#dependencies
    const passed = await this.#lease(request.lease, 'renew')
    const own = { ...request, ...this.#own('claim', request), lease: passed.lease }
    const claiming = accounts.claim(this.#account, own, () => store.claim(own))
    const answer = visibleAnswer(this.#principal, await onLease(passed, claiming))
    if (answer.outcome === 'claimed' && !answer.holds) await this.#queued(passed.lease)
    return answer
  }

  async release(request: ReleaseRequest): Promise<Changed> {
    this.#call(checkRelease(request, this.#limits))
    const { store, accounts } = this.#dependencies
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
    checkValue(this.#principal.name, this.#principal.quota, request.value)
    const passed = await this.#lease(request.lease, 'renew')
    const own = { ...request, ...this.#own('update', request), lease: passed.lease }
    return onLease(passed, this.#dependencies.store.update(own))
  }

  async read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    this.#call(checkQuery(query, this.#limits))
    const { store } = this.#dependencies
    const { rights, name } = this.#principal
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
    return (mayAll ? store.read(asked) : readWithoutServerKeys(store, asked)) as Promise<Reading<Q>>
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    this.#call(checkWatch(target, observer, this.#limits))
    const { name, quota } = this.#principal
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
    // Count it before opening it: it may end at once.
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

  /** The principal's rights have changed: end the watches that it may no longer have. */
  rightsChanged(): void {
    for (const watch of [...this.#watches]) {
      const error = watch.may()
      if (error !== undefined) watch.refuse(error)
    }
  }

  /** Ends this principal's calls and watches. The store itself stays open. */
  async close(): Promise<void> {
    this.#left = true
    for (const watch of [...this.#watches]) watch.close()
  }

  /** The checks of every call: its arguments, the access token, and the call rate. */
  #call(complaint: Complaint): void {
    const { name, ended, quota } = this.#principal
    if (complaint !== undefined) throw LeaseholdError.from(complaint)
    if (ended !== undefined) throw new LeaseholdError('unauthenticated', `${show(name)}: ${ended}`)
    this.#account.usage.call(name, quota, this.#dependencies.clock)
  }

  /**
   * Scopes a request id to its principal and operation. A principal must not receive the answer of
   * another's request, nor a grant the answer of a claim.
   */
  #own(
    operation: string,
    { request }: { readonly request?: string | undefined },
  ): { readonly request?: string } {
    if (request === undefined) return {}
    const scoped = createHash('sha256').update(
      JSON.stringify([this.#principal.name, operation, request]),
    )
    return { request: scoped.digest('base64url') }
  }

  #mayWatch(target: WatchTarget): LeaseholdError | undefined {
    const { name, rights } = this.#principal
    if (!('prefix' in target) || allowsOthers(rights, 'watch', target.prefix)) return undefined
    if (allows(rights, 'watch', target.prefix)) return undefined
    return forbidden(name, 'watch', target.prefix)
  }

  #openWatch(watch: GuardedWatch, target: WatchTarget): void {
    const { store } = this.#dependencies
    if ('prefix' in target) {
      const mayAll = () => allows(this.#principal.rights, 'watch', target.prefix)
      watch.show = (notice) => (mayAll() ? notice : withoutServerKeys(notice))
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
          watch.show = (notice) => visibleNotice(store, this.#principal, passed, notice)
        watch.open(store, { lease: passed.lease })
      })
      .catch((error) => watch.refuse(error))
  }

  #demandKey(verb: Verb, key: Key): void {
    const { name, rights } = this.#principal
    if (!allowsKey(rights, verb, key)) throw forbidden(name, verb, key)
  }

  #mayClaim(claims: readonly ClaimSpec[]): void {
    for (const { key, value } of claims) {
      this.#demandKey('claim', key)
      checkValue(this.#principal.name, this.#principal.quota, value)
    }
  }

  async #readLease(asked: Extract<Query, { readonly lease: LeaseId }>): Promise<LeaseReading> {
    const { lease, reading, hidesReason } = await this.#lease(asked.lease, 'read')
    const found = reading ?? (await this.#dependencies.store.read({ ...asked, lease }))
    return {
      ...found,
      lease: found.lease && withoutOwner(found.lease),
      // Show what was checked: the lease may have other keys by now.
      claims: found.claims.slice(0, asked.limit),
      end: hidesReason ? withoutReason(found.end) : found.end,
    }
  }

  /** The plain id of a lease, if the principal may use it by its secret or by its keys. */
  async #lease(
    given: LeaseId,
    verb: 'renew' | 'release' | 'read' | 'watch',
  ): Promise<AllowedLease> {
    const known = this.#known.get(given)
    if (known !== undefined) return { lease: known, hidesReason: false }
    await this.#account.lookUp(this.#dependencies.clock)
    try {
      const passed = await this.#leaseAccess.allow(given, verb)
      if (passed.isProven && this.#known.size < KNOWN_MAX) this.#known.set(given, passed.lease)
      return passed
    } catch (error) {
      if (isLeaseholdError(error, 'forbidden')) {
        this.#record(verb, { lease: given }, undefined, error.code)
      }
      throw error
    }
  }

  /** Ending another's lease or claim needs the right to it and a reason for the audit log. */
  async #forcedTarget(target: RevokeTarget, why: string | undefined): Promise<AllowedTarget> {
    try {
      const ending = await this.#leaseAccess.mayEnd(target)
      if (why === undefined || why.trim() === '') {
        throw invalid(
          'ending a claim or lease of others needs a reason: add why; the holder and the history show it',
        )
      }
      return ending
    } catch (error) {
      this.#record('revoke', target, why, codeOf(error))
      throw error
    }
  }

  /** A claim waits. If the access token ended meanwhile, the claim is withdrawn and refused. */
  async #queued(lease: LeaseId): Promise<void> {
    const { ended } = this.#principal
    this.#account.queued(lease)
    if (ended === undefined) return
    await withdrawWaiting(this.#dependencies.store, [lease], ended).catch((error) => {
      throw notWithdrawn(error)
    })
    throw new LeaseholdError('unauthenticated', ended)
  }

  #forget(lease: LeaseId): void {
    this.#dependencies.accounts.forget(lease)
    this.#known.delete(this.#dependencies.secrets.sign(lease))
  }

  #sign(lease: LeaseId): LeaseId {
    if (this.#known.size >= KNOWN_MAX) this.#known = new Map()
    const signed = this.#dependencies.secrets.sign(lease)
    this.#known.set(signed, lease)
    return signed
  }

  #record(action: string, target: unknown, why: string | undefined, outcome: string): void {
    const by = this.#principal.name
    this.#dependencies.audit.record({ action, by, from: this.#from, target, why, outcome })
  }
}

function codeOf(error: unknown): string {
  return isLeaseholdError(error) ? error.code : 'unknown-outcome'
}
