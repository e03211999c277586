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
  isLeaseholdError,
  LeaseholdError,
  type LeaseId,
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
import type { Audit } from './audit.ts'
import { GuardedWatch } from './guarded-watch.ts'
import { keysOf, readWithoutOwn, withoutOwn } from './own-keys.ts'
import type { Principal } from './principal.ts'
import { checkTtl, exceeded } from './quota.ts'
import { allows, allowsOthers, allowsSomewhere, demand, forbidden } from './rights.ts'
import type { LeaseSecrets } from './secrets.ts'

export interface Surroundings {
  readonly store: LeaseStore
  readonly limits: Limits
  readonly secrets: LeaseSecrets
  readonly audit: Audit
  readonly clock: Clock
}

/** So many signed ids are remembered; one that is forgotten costs a hash. */
const KNOWN_MAX = 1_000_000

/**
 * The store as one principal may use it. Everything that reaches the store over the network comes
 * through here, whatever it came by, so this is the one place where rights are decided.
 *
 * Leases have two forms here. Whoever is granted one gets its id with a secret behind it; everybody
 * else sees the plain id. With the secret a lease can be used by anyone who has it; without, only by
 * those who have the right to all of its keys.
 */
export class GuardedStore implements LeaseStore {
  readonly #around: Surroundings
  readonly #who: Principal
  readonly #account: Account
  /** Signed ids that were looked at before: a heartbeat must not cost a hash for each lease. */
  #known = new Map<LeaseId, LeaseId>()
  readonly #watches = new Set<GuardedWatch>()

  constructor(around: Surroundings, who: Principal, account: Account) {
    this.#around = around
    this.#who = who
    this.#account = account
  }

  get guarantees(): Guarantees {
    return this.#around.store.guarantees
  }

  async grant(request: GrantRequest): Promise<Granted | Busy> {
    this.#call(checkGrant(request, this.#around.limits))
    const { claims = [], parent } = request
    if (claims.length === 0 && !allowsSomewhere(this.#who.rights, 'claim')) {
      throw forbidden(this.#who.name, 'claim', '')
    }
    this.#mayClaim(claims)
    checkTtl(this.#who.name, this.#who.quota, request.ttl)
    const plain = parent === undefined ? undefined : await this.#lease(parent, 'renew')
    const own = { ...request, ...this.#own(request), parent: plain }
    return this.#within({ leases: 1, claims: claims.length }, async (store) => {
      const answer = await store.grant(own)
      if (answer.outcome === 'busy') return answer
      this.#account.granted(answer.lease, claims.length)
      return { ...answer, lease: this.#sign(answer.lease) }
    })
  }

  async renew(leases: readonly LeaseId[]): Promise<Renewed> {
    this.#call(checkRenew(leases, this.#around.limits))
    const plain: LeaseId[] = []
    const given = new Map<LeaseId, LeaseId>()
    for (const lease of leases) {
      const id = this.#known.get(lease) ?? (await this.#lease(lease, 'renew'))
      plain.push(id)
      if (id !== lease) given.set(id, lease)
    }
    const { lost, capped } = await this.#around.store.renew(plain)
    for (const { lease } of lost) this.#forget(lease)
    // Whoever asked by a signed id is answered by it.
    const named = <Entry extends { readonly lease: LeaseId }>(entry: Entry): Entry => ({
      ...entry,
      lease: given.get(entry.lease) ?? entry.lease,
    })
    return { lost: lost.map(named), capped: capped.map(named) }
  }

  async revoke(request: RevokeRequest): Promise<Revoked> {
    this.#call(checkRevoke(request, this.#around.limits))
    const { target, by = this.#who.name, why } = request
    const own = this.#ownTarget(target)
    const plain = own ?? (await this.#forcedTarget(target, why))
    // Nobody can put what they did on another's name.
    const named = own === undefined ? this.#who.name : by
    try {
      const answer = await this.#around.store.revoke({
        ...request,
        ...this.#own(request),
        target: plain,
        by: named,
      })
      if ('lease' in plain && request.after === undefined) this.#forget(plain.lease)
      if (own === undefined) this.#record('revoke', plain, why, 'done')
      return answer
    } catch (error) {
      if (own === undefined) this.#record('revoke', plain, why, codeOf(error))
      throw error
    }
  }

  async claim(request: ClaimRequest): Promise<Claimed | Busy> {
    this.#call(checkClaim(request, this.#around.limits))
    this.#mayClaim(request.claims)
    const lease = this.#known.get(request.lease) ?? (await this.#lease(request.lease, 'renew'))
    const claims = request.claims.length
    return this.#within({ leases: 0, claims }, async (store) => {
      const answer = await store.claim({ ...request, ...this.#own(request), lease })
      if (answer.outcome === 'claimed') this.#account.claimed(lease, claims)
      return answer
    })
  }

  async release(request: ReleaseRequest): Promise<Changed> {
    this.#call(checkRelease(request, this.#around.limits))
    const lease = this.#known.get(request.lease) ?? (await this.#lease(request.lease, 'release'))
    const answer = await this.#around.store.release({ ...request, ...this.#own(request), lease })
    this.#account.released(lease, request.keys.length, answer.revision)
    return answer
  }

  async update(request: UpdateRequest): Promise<Changed> {
    this.#call(checkUpdate(request, this.#around.limits))
    demand(this.#who, 'claim', request.key)
    this.#mayCarry(request.value)
    const lease = this.#known.get(request.lease) ?? (await this.#lease(request.lease, 'renew'))
    return this.#around.store.update({ ...request, ...this.#own(request), lease })
  }

  async read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    this.#call(checkQuery(query, this.#around.limits))
    const asked: Query = query
    if ('lease' in asked) {
      const plain = await this.#lease(asked.lease, 'read')
      return this.#around.store.read({ ...asked, lease: plain } as Query) as Promise<Reading<Q>>
    }
    const subject = keysOf(asked)
    const { rights } = this.#who
    if (!allows(rights, 'read', subject) && allowsOthers(rights, 'read', subject)) {
      if ('leases' in asked) return this.#around.store.read(query)
      if ('prefix' in asked) return readWithoutOwn(this.#around.store, asked) as Promise<Reading<Q>>
    }
    demand(this.#who, 'read', subject)
    return this.#around.store.read(query)
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    this.#call(checkWatch(target, observer, this.#around.limits))
    const { name, quota } = this.#who
    if (quota.watches !== undefined && this.#account.usage.watches >= quota.watches) {
      throw exceeded(name, `${quota.watches} watches at a time`, 'close one first')
    }
    const { prefix = '' } = target as { readonly prefix?: string }
    const mayAll = () => 'lease' in target || allows(this.#who.rights, 'watch', prefix)
    const watch = new GuardedWatch(withoutOwn(observer, mayAll), () => {
      if (this.#watches.delete(watch)) this.#account.usage.watches--
    })
    if ('prefix' in target) {
      const refusal = this.#mayWatch(target)
      if (refusal !== undefined) throw refusal
      watch.open(this.#around.store, target)
    } else {
      const known = this.#known.get(target.lease)
      if (known !== undefined) watch.open(this.#around.store, { lease: known })
      else {
        this.#lease(target.lease, 'watch')
          .then((lease) => watch.open(this.#around.store, { lease }))
          .catch((error) => watch.refuse(error))
      }
    }
    watch.may = () => this.#mayWatch(target)
    this.#watches.add(watch)
    this.#account.usage.watches++
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
    for (const watch of [...this.#watches]) watch.close()
  }

  /** What every call begins with: it is refused where it is wrong in itself, or one too many. */
  #call(complaint: Complaint): void {
    const { name, ended, quota } = this.#who
    if (complaint !== undefined) throw LeaseholdError.from(complaint)
    if (ended !== undefined) throw new LeaseholdError('unauthenticated', `${show(name)}: ${ended}`)
    this.#account.usage.call(name, quota, this.#around.clock)
  }

  /** A request id is its principal's own: who repeats another's must not be given its answer. */
  #own({ request }: { readonly request?: string | undefined }): { readonly request?: string } {
    if (request === undefined) return {}
    const scoped = createHash('sha256').update(JSON.stringify([this.#who.name, request]))
    return { request: scoped.digest('base64url') }
  }

  #mayWatch(target: WatchTarget): LeaseholdError | undefined {
    const { name, rights, ended } = this.#who
    if (ended !== undefined) return new LeaseholdError('unauthenticated', ended)
    if (!('prefix' in target) || allowsOthers(rights, 'watch', target.prefix)) return undefined
    if (allows(rights, 'watch', target.prefix)) return undefined
    return forbidden(name, 'watch', target.prefix)
  }

  #mayClaim(claims: readonly ClaimSpec[]): void {
    for (const { key, value } of claims) {
      demand(this.#who, 'claim', key)
      this.#mayCarry(value)
    }
  }

  #mayCarry(value: string | undefined): void {
    const { name, quota } = this.#who
    if (quota.valueBytes === undefined || value === undefined) return
    if (Buffer.byteLength(value) <= quota.valueBytes) return
    throw exceeded(name, `${quota.valueBytes} bytes of value`, 'make it shorter')
  }

  /** The plain id of a lease, if it may be used in this way: by its secret, or by its keys. */
  async #lease(given: LeaseId, verb: 'renew' | 'release' | 'read' | 'watch') {
    const { lease, proven } = this.#around.secrets.open(given)
    if (proven) {
      if (this.#known.size < KNOWN_MAX) this.#known.set(given, lease)
      return lease
    }
    if (allows(this.#who.rights, verb, '')) return lease
    const reading = await this.#around.store.read({ lease, limit: 10_000 })
    // A lease that is no more has nothing to guard: the store says what became of it.
    if (reading.lease === undefined) return lease
    const all = reading.claims.length === reading.lease.claims && reading.lease.claims > 0
    const other = reading.claims.find(({ key }) => !allows(this.#who.rights, verb, key))
    if (all && other === undefined) return lease
    this.#record(verb, { lease }, undefined, 'forbidden')
    throw new LeaseholdError(
      'forbidden',
      `lease ${show(lease)} is not yours: give its id as it was granted, with its secret, or have the right to ${verb} all of its keys`,
    )
  }

  /** What one holds oneself may be ended without a right or a reason. */
  #ownTarget(target: RevokeTarget): RevokeTarget | undefined {
    const given = 'lease' in target ? target.lease : 'parent' in target ? target.parent : undefined
    if (given === undefined) return undefined
    const { lease, proven } = this.#around.secrets.open(given)
    if (!proven) return undefined
    return 'lease' in target ? { lease } : { parent: lease }
  }

  /** Ending what others hold takes the right to it, and a reason that is written down. */
  async #forcedTarget(target: RevokeTarget, why: string | undefined): Promise<RevokeTarget> {
    const { secrets } = this.#around
    try {
      let plain = target
      if ('key' in target) demand(this.#who, 'admin', target.key)
      else if ('prefix' in target) demand(this.#who, 'admin', target.prefix)
      else {
        const { lease } = secrets.open('lease' in target ? target.lease : target.parent)
        await this.#mayEndLease(lease)
        plain = 'lease' in target ? { lease } : { parent: lease }
      }
      if (why === undefined || why.trim() === '') {
        throw new LeaseholdError(
          'invalid-argument',
          'ending what others hold needs a reason: say why, it is told to them and kept',
        )
      }
      return plain
    } catch (error) {
      this.#record('revoke', target, why, codeOf(error))
      throw error
    }
  }

  async #mayEndLease(lease: LeaseId): Promise<void> {
    if (allows(this.#who.rights, 'admin', '')) return
    const { claims, lease: found } = await this.#around.store.read({ lease, limit: 10_000 })
    if (found === undefined) return
    const mayAll = claims.length === found.claims && found.claims > 0 && found.children === 0
    const other = claims.find(({ key }) => !allows(this.#who.rights, 'admin', key))
    if (!mayAll || other !== undefined) throw forbidden(this.#who.name, 'admin', other?.key ?? '')
  }

  #within<Answer>(
    used: { readonly leases: number; readonly claims: number },
    call: (store: LeaseStore) => Promise<Answer>,
  ): Promise<Answer> {
    const { store } = this.#around
    return this.#account.within(store, this.#who, used, () => call(store))
  }

  #forget(lease: LeaseId): void {
    this.#account.forget(lease)
    this.#known.delete(this.#around.secrets.sign(lease))
  }

  #sign(lease: LeaseId): LeaseId {
    if (this.#known.size >= KNOWN_MAX) this.#known = new Map()
    const signed = this.#around.secrets.sign(lease)
    this.#known.set(signed, lease)
    return signed
  }

  #record(action: string, target: unknown, why: string | undefined, outcome: string): void {
    this.#around.audit.record({ action, by: this.#who.name, target, why, outcome })
  }
}

function codeOf(error: unknown): string {
  return isLeaseholdError(error) ? error.code : 'unknown-outcome'
}
