import type {
  Claim,
  ClaimRequest,
  ClaimSpec,
  End,
  ErrorCode,
  Event,
  GrantRequest,
  Lease,
  LeaseId,
  Limits,
  Query,
  ReleaseRequest,
  RevokeRequest,
  Tenure,
  UpdateRequest,
} from '../../../src/port/index.ts'
import { CLAIMS_SHOWN, holders } from '../../../src/port/index.ts'
import type { ModelClaim, ModelLease, ModelNotice } from './model-state.ts'

type Refused = { readonly code: ErrorCode; readonly end?: End | undefined }

const MAX_LIFE_REACHED = 'it reached the end of its maximum life'

/**
 * The kernel without regard to time and memory: plain lists, filtered and sorted again for every
 * question, and `holds()` of the port to decide which claims hold. It has no slots, heaps, rings or
 * rows, and forgets nothing. A lease's id is its revision.
 */
export class Model {
  revision = 0
  leases: ModelLease[] = []
  /** In token order. */
  claims: ModelClaim[] = []
  readonly events: Event[] = []
  readonly tenures: (Tenure & { readonly key: string })[] = []
  readonly ended = new Map<LeaseId, End>()
  readonly answers = new Map<string, object>()
  notices: ModelNotice[] = []
  readonly #limits: Limits

  constructor(limits: Limits) {
    this.#limits = limits
  }

  grant(request: GrantRequest, now: number): object {
    return this.#once(request, () => this.#grant(request, now))
  }

  claim(request: ClaimRequest, now: number): object {
    return this.#once(request, () => this.#claim(request, now))
  }

  release(request: ReleaseRequest, now: number): object {
    return this.#once(request, () => this.#release(request, now) ?? { revision: this.revision })
  }

  update(request: UpdateRequest, now: number): object {
    return this.#once(request, () => {
      const claim = this.#own(request.lease, request.key, request.token)
      if ('code' in claim) return claim
      this.revision++
      claim.value = request.value
      this.#event('updated', claim, now)
      return { revision: this.revision }
    })
  }

  revoke(request: RevokeRequest, now: number): object {
    return this.#once(request, () => this.#revoke(request, now))
  }

  renew(ids: readonly LeaseId[], now: number): object {
    const lost: object[] = []
    const capped: object[] = []
    for (const id of ids) {
      const lease = this.#lease(id)
      if (!lease) {
        lost.push({ lease: id, end: this.ended.get(id) })
        continue
      }
      lease.renewedAt = now
      if (lease.endOfLife < Infinity && this.deadline(lease) === lease.endOfLife) {
        capped.push({
          lease: id,
          remaining: Math.max(0, lease.endOfLife - now),
          end: lease.cappedBy,
        })
      }
    }
    return { lost, capped }
  }

  /** Ends this lease and all its descendants because its time is over. */
  expire(lease: ModelLease, now: number): void {
    const aged = this.deadline(lease) === lease.endOfLife
    const end: End = aged
      ? (lease.cappedBy ?? { reason: 'expired', why: MAX_LIFE_REACHED })
      : { reason: 'expired' }
    this.revision++
    this.#endLeases(this.#family([lease]), now, end)
  }

  due(now: number): ModelLease[] {
    return this.leases.filter((lease) => this.deadline(lease) <= now)
  }

  deadline({ renewedAt, spec, endOfLife }: ModelLease): number {
    return Math.min(renewedAt + spec.ttl + (spec.grace ?? 0), endOfLife)
  }

  /** What a kernel's reader would answer, except for the history: see `tenures`. */
  read(query: Query): object {
    const { revision } = this
    if ('key' in query) {
      const { key: _, ...entry } = this.#entry(query.key, query.limit ?? 1000)
      return { revision, ...entry }
    }
    if ('prefix' in query) {
      const names = [...new Set(this.claims.map(({ key }) => key))].sort()
      const under = names.filter((key) => key.startsWith(query.prefix) && key > (query.after ?? ''))
      const shown = under.slice(0, query.limit ?? 1000)
      const keys = shown.map((key) => {
        const held = holders(this.#queue(key))
        return this.#entry(key, Math.min(held + 1, CLAIMS_SHOWN))
      })
      return { revision, keys, more: under.length > shown.length }
    }
    if ('lease' in query) {
      const lease = this.#lease(query.lease)
      if (!lease) return { revision, lease, end: this.ended.get(query.lease), claims: [] }
      return { revision, lease: this.#show(lease), end: undefined, claims: this.#claimsOf(lease) }
    }
    if ('leases' in query) {
      return { revision, leases: this.leases.map((lease) => this.#show(lease)), more: false }
    }
    return { revision, tenures: this.history(query.history) }
  }

  /** All tenures of a key, latest first. */
  history(key: string): Tenure[] {
    const own = this.tenures.filter((tenure) => tenure.key === key)
    return own.reverse().map(({ key: _, ...tenure }) => tenure)
  }

  #grant(request: GrantRequest, now: number): object {
    const specs = request.claims ?? []
    if (this.leases.length >= this.#limits.leases) return { code: 'limit-exceeded' }
    if (specs.length > this.#limits.claimsPerLease) return { code: 'limit-exceeded' }
    const full = this.#makeRoom(specs, now)
    if (full) return full
    if (request.ifFree && specs.length > 0 && !this.#free(specs)) return this.#busy(specs)
    if (request.parent !== undefined) {
      const parent = this.#lease(request.parent)
      if (!parent) return this.#noLease(request.parent)
      const children = this.leases.filter(({ spec }) => spec.parent === parent.id)
      if (children.length >= this.#limits.childrenPerLease) return { code: 'limit-exceeded' }
      if (this.#depth(parent) >= this.#limits.leaseDepth) return { code: 'limit-exceeded' }
    }
    const revision = ++this.revision
    const lease: ModelLease = {
      id: `L${revision}`,
      spec: request,
      grantedAt: now,
      renewedAt: now,
      endOfLife: now + (request.maxLife ?? Infinity),
      cappedBy: undefined,
    }
    this.leases.push(lease)
    const ahead = this.#add(lease, specs, now)
    const token = specs.length > 0 ? revision : 0
    const holds = ahead.length === 0
    return { outcome: 'granted', lease: lease.id, revision, token, holds, ahead }
  }

  #claim(request: ClaimRequest, now: number): object {
    const full = this.#makeRoom(request.claims, now)
    if (full) return full
    const lease = this.#lease(request.lease)
    if (!lease) return this.#noLease(request.lease)
    const { replaces } = request
    if (replaces !== undefined) {
      const keys = request.claims.map(({ key }) => key)
      const missing = this.#release({ lease: request.lease, keys, token: replaces }, now)
      if (missing) return missing
    } else if (this.#claimsOf(lease).length + request.claims.length > this.#limits.claimsPerLease) {
      return { code: 'limit-exceeded' }
    } else if (request.ifFree && !this.#free(request.claims)) {
      return this.#busy(request.claims)
    } else {
      this.revision++
    }
    const { revision } = this
    const ahead = this.#add(lease, request.claims, now)
    return { outcome: 'claimed', revision, token: revision, holds: ahead.length === 0, ahead }
  }

  /** Releases claims in a new revision, or says which is missing. */
  #release(request: ReleaseRequest, now: number): object | undefined {
    const found = request.keys.map((key) => this.#own(request.lease, key, request.token))
    const missing = found.find((claim) => 'code' in claim)
    if (missing) return missing
    this.revision++
    this.#remove(found as ModelClaim[], now, { reason: 'released' })
    return undefined
  }

  #revoke(request: RevokeRequest, now: number): object {
    const { target, by, why } = request
    const nothing = { revision: this.revision, leases: 0, claims: 0, more: false }
    if ('prefix' in target || 'key' in target) {
      const meant = this.claims.filter(({ key, token }) =>
        'prefix' in target
          ? key.startsWith(target.prefix)
          : key === target.key && (target.token === undefined || token === target.token),
      )
      if (meant.length === 0) return nothing
      // By key and then by token: one call removes a limited number, and these are the ones.
      meant.sort((a, b) => (a.key === b.key ? a.token - b.token : a.key < b.key ? -1 : 1))
      const some = meant.slice(0, this.#limits.page)
      this.revision++
      for (const { lease, key, token } of some) {
        this.notices.push({ lease: lease.id, type: 'removed', key, token })
      }
      this.#remove(some, now, { reason: 'revoked', by, why })
      const more = some.length < meant.length
      return { revision: this.revision, leases: 0, claims: some.length, more }
    }
    const id = 'lease' in target ? target.lease : target.parent
    const lease = this.#lease(id)
    if (!lease) return this.#noLease(id)
    const roots =
      'lease' in target ? [lease] : this.leases.filter(({ spec }) => spec.parent === lease.id)
    return this.#endOrCap(roots, request, now) ?? nothing
  }

  #endOrCap(roots: ModelLease[], request: RevokeRequest, now: number): object | undefined {
    const { by, why, after } = request
    if (after) {
      const capped = roots.filter(({ endOfLife }) => endOfLife > now + after)
      if (capped.length === 0) return undefined
      this.revision++
      for (const lease of capped) {
        lease.endOfLife = now + after
        lease.cappedBy = { reason: 'broken', by, why }
        this.notices.push({ lease: lease.id, type: 'capped' })
      }
      return { revision: this.revision, leases: capped.length, claims: 0, more: false }
    }
    if (roots.length === 0) return undefined
    this.revision++
    const family = this.#family(roots)
    const claims = this.#endLeases(family, now, { reason: 'revoked', by, why })
    return { revision: this.revision, leases: family.length, claims, more: false }
  }

  #endLeases(family: ModelLease[], now: number, end: End): number {
    const doomed = this.claims.filter(({ lease }) => family.includes(lease))
    this.leases = this.leases.filter((lease) => !family.includes(lease))
    for (const lease of family) {
      this.ended.set(lease.id, end)
      this.notices.push({ lease: lease.id, type: 'gone' })
    }
    this.#remove(doomed, now, end)
    return doomed.length
  }

  /** The leases and all their descendants. */
  #family(roots: ModelLease[]): ModelLease[] {
    const children = this.leases.filter((lease) => roots.some(({ id }) => id === lease.spec.parent))
    return children.length === 0 ? roots : [...roots, ...this.#family(children)]
  }

  /** Removes all first. Then notifies the leases whose claims hold. */
  #remove(doomed: readonly ModelClaim[], now: number, end: End): void {
    for (const claim of doomed) {
      this.#event('removed', claim, now, end)
      if (claim.heldSince !== undefined) {
        const { key, token, lease, heldSince } = claim
        const { holder } = lease.spec
        this.tenures.push({ key, token, holder, lease: lease.id, heldSince, endedAt: now, end })
      }
    }
    this.claims = this.claims.filter((claim) => !doomed.includes(claim))
    const before = this.claims.filter((claim) => this.#holdsAll(claim))
    this.#judge(now)
    const notified = new Set<number>()
    for (const claim of this.claims) {
      if (before.includes(claim) || !this.#holdsAll(claim) || notified.has(claim.token)) continue
      notified.add(claim.token)
      this.notices.push({ lease: claim.lease.id, type: 'holds', token: claim.token })
    }
  }

  #add(lease: ModelLease, specs: readonly ClaimSpec[], now: number): object[] {
    const added = specs.map(
      ({ key, mode = 'exclusive', limit, value }): ModelClaim => ({
        key,
        token: this.revision,
        lease,
        mode,
        limit,
        value,
        claimedAt: now,
        heldSince: undefined,
      }),
    )
    for (const claim of added) {
      this.claims.push(claim)
      this.#event('claimed', claim, now)
    }
    this.#judge(now)
    return added
      .filter((claim) => claim.heldSince === undefined)
      .map(({ key }) => this.#ahead(key, this.#queue(key).length - 1))
  }

  /** Decides which claims hold, with the port's own function. */
  #judge(now: number): void {
    for (const key of new Set(this.claims.map((claim) => claim.key))) {
      const queue = this.#queue(key)
      for (const claim of queue.slice(0, holders(queue))) {
        if (claim.heldSince !== undefined) continue
        claim.heldSince = now
        this.#event('held', claim, now)
      }
    }
  }

  /** Expires overdue leases at the front of these keys. Returns a key that is full. */
  #makeRoom(specs: readonly ClaimSpec[], now: number): Refused | undefined {
    for (const { key } of specs) {
      for (;;) {
        const first = this.#queue(key)[0]
        if (!first || this.deadline(first.lease) > now) break
        this.expire(first.lease, now)
      }
      if (this.#queue(key).length >= this.#limits.claimsPerKey) return { code: 'limit-exceeded' }
    }
    return undefined
  }

  #free(specs: readonly ClaimSpec[]): boolean {
    return specs.every(({ key, mode = 'exclusive', limit }) => {
      const queue = [...this.#queue(key), { mode, limit }]
      return holders(queue) === queue.length
    })
  }

  #busy(specs: readonly ClaimSpec[]): object {
    const taken = specs.filter((spec) => !this.#free([spec]))
    const ahead = taken.map(({ key }) => this.#ahead(key, this.#queue(key).length))
    return { outcome: 'busy', revision: this.revision, ahead }
  }

  #ahead(key: string, count: number): object {
    return { key, count, first: this.#see(this.#queue(key)[0]!) }
  }

  #own(id: LeaseId, key: string, token: number): ModelClaim | Refused {
    const lease = this.#lease(id)
    if (!lease) return this.#noLease(id)
    const claim = this.claims.find(
      (each) => each.lease === lease && each.key === key && each.token === token,
    )
    return claim ?? { code: 'claim-not-found' }
  }

  #entry(key: string, most: number) {
    const queue = this.#queue(key)
    const claims = queue.slice(0, most).map((claim) => this.#see(claim))
    return { key, claims, holders: holders(queue), count: queue.length }
  }

  #see(claim: ModelClaim): Claim {
    const { lease, ...rest } = claim
    return { ...rest, lease: lease.id, holder: lease.spec.holder, until: this.deadline(lease) }
  }

  #show(lease: ModelLease): Lease {
    const { id, spec, grantedAt, renewedAt, endOfLife } = lease
    return {
      id,
      holder: spec.holder,
      ttl: spec.ttl,
      grace: spec.grace ?? 0,
      labels: spec.labels ?? {},
      parent: spec.parent,
      grantedAt,
      renewedAt,
      until: this.deadline(lease),
      endOfLife,
      claims: this.#claimsOf(lease).length,
      children: this.leases.filter((each) => each.spec.parent === id).length,
    }
  }

  #claimsOf(lease: ModelLease): Claim[] {
    return this.claims.filter((claim) => claim.lease === lease).map((claim) => this.#see(claim))
  }

  #queue(key: string): ModelClaim[] {
    return this.claims.filter((claim) => claim.key === key)
  }

  #holdsAll({ token }: ModelClaim): boolean {
    return this.claims.every((each) => each.token !== token || each.heldSince !== undefined)
  }

  #depth(lease: ModelLease): number {
    const parent = lease.spec.parent === undefined ? undefined : this.#lease(lease.spec.parent)
    return parent ? 1 + this.#depth(parent) : 1
  }

  #lease(id: LeaseId): ModelLease | undefined {
    return this.leases.find((lease) => lease.id === id)
  }

  #noLease(id: LeaseId): Refused {
    const end = this.ended.get(id)
    return end ? { code: 'lease-ended', end } : { code: 'lease-not-found' }
  }

  #event(type: Event['type'], claim: ModelClaim, at: number, end?: End): void {
    const { key, token, lease, mode, limit, value } = claim
    const { holder } = lease.spec
    const { revision } = this
    const event = { revision, type, key, token, lease: lease.id, holder, mode, limit, value, at }
    this.events.push({ ...event, end })
  }

  #once(call: { readonly request?: string | undefined }, carryOut: () => object): object {
    const known = call.request === undefined ? undefined : this.answers.get(call.request)
    const answer = known ?? carryOut()
    if (call.request !== undefined) this.answers.set(call.request, answer)
    return answer
  }
}
