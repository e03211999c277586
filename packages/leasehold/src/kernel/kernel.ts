import {
  type Busy,
  type Capped,
  type Changed,
  type Claimed,
  type ClaimRequest,
  type ClaimSpec,
  type Complaint,
  checkClaim,
  checkGrant,
  checkRelease,
  checkRenew,
  checkRevoke,
  checkUpdate,
  DEFAULT_LIMITS,
  type End,
  ERRORS,
  type Granted,
  type GrantRequest,
  type Key,
  type LeaseId,
  type Limits,
  type Lost,
  type OwnClaim,
  type Refusal,
  type ReleaseRequest,
  type Renewed,
  type RequestId,
  type Revision,
  type Revoked,
  type RevokeRequest,
  show,
  type UpdateRequest,
} from '../port/index.ts'
import type { EventLog } from './history/index.ts'
import { Ledger } from './ledger.ts'
import type { Answer, ChangeSink, NoticeSink, Refused, Replay } from './outputs/index.ts'
import { Reader } from './reader.ts'
import { endOf, exceeded, noLease, refused } from './refusals.ts'
import { describe, describeRetained, Replayer } from './replay.ts'
import { RetainedState } from './retained-state.ts'
import { ClaimAdmission, expireLease, LeasesBySlot, NOTHING_AHEAD, revoke } from './steps/index.ts'
import { NONE } from './tables/index.ts'

const RELEASED: End = { reason: 'released' }

export interface KernelOptions {
  readonly limits?: Partial<Limits> | undefined
  /** Receives every change. */
  readonly changeSink?: ChangeSink | undefined
  /** Receives what the holders of leases must know. */
  readonly noticeSink?: NoticeSink | undefined
  /** The revision to start after. Tokens will be greater. */
  readonly revision?: Revision | undefined
  /**
   * What ends a lease whose time is over. `timed`, the default: the kernel's own deadlines, by the
   * `now` of each call. `commanded`: only `bySlot.expire`, called by whatever runs the kernel.
   */
  readonly expiry?: 'timed' | 'commanded' | undefined
}

/**
 * The state machine of leases: `(state, command, now) -> answer`, and nothing else. No I/O, no
 * clock, no randomness, no promises: the same commands at the same times give the same answers.
 * Every other store is tested against it.
 *
 * Each command checks everything before it changes anything, so a refused command leaves no trace.
 * `now` is a positive time that never decreases. With an `obstacle` nothing new is carried out: a
 * repeated request gets its earlier answer, and any other request gets the obstacle as refusal.
 */
export class Kernel {
  readonly limits: Limits
  readonly reader: Reader
  readonly bySlot: LeasesBySlot
  readonly retained: RetainedState
  readonly #ledger: Ledger
  readonly #admission: ClaimAdmission
  #replayer: Replayer | undefined
  readonly #knownKey = (key: Key) => this.#ledger.tables.keys.find(key) !== NONE

  constructor(options: KernelOptions = {}) {
    this.limits = { ...DEFAULT_LIMITS, ...options.limits }
    this.#ledger = new Ledger(this.limits, {
      revision: options.revision ?? 0,
      isTimed: options.expiry !== 'commanded',
      changeSink: options.changeSink,
      noticeSink: options.noticeSink,
    })
    this.reader = new Reader(this.#ledger)
    this.bySlot = new LeasesBySlot(this.#ledger)
    this.retained = new RetainedState(this.#ledger)
    this.#admission = new ClaimAdmission(this.#ledger, this.reader)
  }

  get revision(): Revision {
    return this.#ledger.revision
  }

  get events(): EventLog {
    return this.#ledger.events
  }

  /** How many leases there are. */
  get leases(): number {
    return this.#ledger.tables.leases.count
  }

  /** No lease is due before this time. It may be too early, never too late. */
  get nextDeadline(): number {
    return this.#ledger.deadlines.next
  }

  grant(request: GrantRequest, now: number, obstacle?: Refusal): Granted | Busy | Refused {
    const complaint = checkGrant(request, this.limits)
    if (complaint) return refused(complaint)
    return this.#known(request, obstacle) ?? this.#remember(request, this.#grant(request, now))
  }

  claim(request: ClaimRequest, now: number, obstacle?: Refusal): Claimed | Busy | Refused {
    const complaint = checkClaim(request, this.limits, this.#knownKey)
    if (complaint) return refused(complaint)
    return this.#known(request, obstacle) ?? this.#remember(request, this.#claim(request, now))
  }

  release(request: ReleaseRequest, now: number, obstacle?: Refusal): Changed | Refused {
    const complaint = checkRelease(request, this.limits, this.#knownKey)
    if (complaint) return refused(complaint)
    return this.#known(request, obstacle) ?? this.#remember(request, this.#release(request, now))
  }

  update(request: UpdateRequest, now: number, obstacle?: Refusal): Changed | Refused {
    const complaint = checkUpdate(request, this.limits)
    if (complaint) return refused(complaint)
    return this.#known(request, obstacle) ?? this.#remember(request, this.#update(request, now))
  }

  revoke(request: RevokeRequest, now: number, obstacle?: Refusal): Revoked | Refused {
    const complaint = checkRevoke(request, this.limits)
    if (complaint) return refused(complaint)
    return (
      this.#known(request, obstacle) ?? this.#remember(request, revoke(this.#ledger, request, now))
    )
  }

  renew(ids: readonly LeaseId[], now: number): Renewed | Refused {
    const complaint = checkRenew(ids, this.limits)
    if (complaint) return refused(complaint)
    const { leases } = this.#ledger.tables
    const lost: Lost[] = []
    const capped: Capped[] = []
    for (const id of ids) {
      const slot = leases.find(id)
      if (slot === NONE) {
        lost.push({ lease: id, end: endOf(this.#ledger, id) })
        continue
      }
      const remaining = this.bySlot.renew(slot, now)
      if (remaining !== Infinity) {
        capped.push({ lease: id, remaining, end: leases.cappedBy.get(slot) })
      }
    }
    return { lost, capped }
  }

  /**
   * Expires the due leases, checking at most `most` leases. Returns whether more may be due. Each
   * lease ends, with all its descendants, in its own revision.
   */
  expire(now: number, most: number): boolean {
    for (let looked = 0; looked < most; looked++) {
      const slot = this.#ledger.nextDue(now)
      if (slot === undefined) return false
      if (slot !== NONE) expireLease(this.#ledger, slot, now)
    }
    return this.nextDeadline <= now
  }

  /** The claims of a living lease, for its watch; `undefined` if there is no such lease. */
  ownClaims(id: LeaseId): { readonly slot: number; readonly claims: OwnClaim[] } | undefined {
    const { leases, claims, keys } = this.#ledger.tables
    const slot = leases.find(id)
    if (slot === NONE) return undefined
    const own: OwnClaim[] = []
    let claim = leases.firstClaim.get(slot)
    for (; claim !== NONE; claim = claims.nextOfLease.get(claim)) {
      own.push({
        key: keys.name.get(claims.key.get(claim))!,
        token: claims.token.get(claim),
        holds: claims.allHold(claim),
      })
    }
    return { slot, claims: own }
  }

  /** How a lease ended, if that is still known. */
  endOf(id: LeaseId): End | undefined {
    return endOf(this.#ledger, id)
  }

  /** All slots of leases are below this. */
  get slots(): number {
    return this.#ledger.tables.leases.slots.end
  }

  /** Reports the living leases of a range of slots, as if they had just been granted. */
  describe(from: number, to: number, changeSink: ChangeSink): void {
    describe(this.#ledger, from, to, changeSink)
  }

  /** Reports what is retained besides the leases, a bounded part with each step. */
  describeRetained(changeSink: ChangeSink): Generator<void> {
    return describeRetained(this.#ledger, changeSink)
  }

  /** A copy that can be described while this kernel changes. It takes no commands. */
  copy(): Kernel {
    const copy = new Kernel({ limits: this.limits, revision: this.revision })
    copy.#ledger.copy(this.#ledger)
    return copy
  }

  /** Rebuilds a kernel: give the result all recorded changes, then call `finishReplay`. */
  replay(): Replay {
    this.#replayer = new Replayer(this.#ledger)
    return this.#replayer
  }

  /** During a replay: only changes after this revision are kept as events. */
  startEvents(revision: Revision): void {
    this.#ledger.events.restart(Math.max(revision, this.#ledger.revision))
  }

  /**
   * Ends a replay. Every lease gets its full ttl from `now`, because renewals are not recorded.
   * `lastTime`, the last time that the old kernel is known to have used, becomes `now`. So the time
   * between the two does not shorten a lease's life.
   */
  finishReplay(now: number, lastTime: number): void {
    this.#replayer?.finish()
    this.#replayer = undefined
    this.#ledger.finishReplay(now, lastTime)
  }

  /**
   * Makes revisions, and so tokens, continue above this one. A watch from a skipped revision must
   * read again, because the change that it saw there is lost. `after` is the last revision whose
   * change is certainly not lost. Default: the current one.
   */
  skipTo(revision: Revision, after = this.#ledger.revision): void {
    if (revision <= this.#ledger.revision) return
    this.#ledger.events.skip(after, revision)
    this.#ledger.revision = revision
  }

  #grant(request: GrantRequest, now: number): Granted | Busy | Refused {
    const ledger = this.#ledger
    const { leases } = ledger.tables
    const specs = request.claims
    if (leases.count >= this.limits.leases) {
      return exceeded(
        `the store has ${this.limits.leases} leases, the maximum. End some leases, or raise the limit.`,
      )
    }
    if (specs) {
      if (specs.length > this.limits.claimsPerLease) {
        return exceeded(
          `claims has ${specs.length} keys; the maximum per lease is ${this.limits.claimsPerLease}. Claim fewer keys, or use several leases.`,
        )
      }
      const complaint = this.#admission.prepare(specs, now)
      if (complaint) return refused(complaint)
      if (request.ifFree && !this.#admission.areFree(specs)) return this.#admission.busy(specs)
    }
    // Looked up last: preparing the keys may have ended the parent.
    const parent = request.parent === undefined ? NONE : leases.find(request.parent)
    if (request.parent !== undefined) {
      const complaint = this.#checkParent(request.parent, parent)
      if (complaint) return refused(complaint)
    }
    const revision = ++ledger.revision
    const lease = ledger.addLease(revision, request, parent, now)
    const id = leases.id(lease)
    if (!specs) {
      const free = { token: 0, holds: true, ahead: NOTHING_AHEAD }
      return { outcome: 'granted', lease: id, revision, ...free }
    }
    const ahead = this.#admission.ahead(ledger.addClaims(revision, lease, specs, now))
    const holds = ahead.length === 0
    return { outcome: 'granted', lease: id, revision, token: revision, holds, ahead }
  }

  #claim(request: ClaimRequest, now: number): Claimed | Busy | Refused {
    const ledger = this.#ledger
    const { leases } = ledger.tables
    const { claims: specs, replaces } = request
    const complaint = this.#admission.prepare(specs, now)
    if (complaint) return refused(complaint)
    // Looked up last: preparing the keys may have ended this very lease.
    const lease = leases.findAgain(request.lease)
    if (lease === NONE) return refused(noLease(this.#ledger, request.lease))
    if (replaces !== undefined) {
      const keys = specs.map(({ key }) => key)
      const changed = this.#release({ lease: request.lease, keys, token: replaces }, now)
      if ('outcome' in changed) return changed
      return this.#add(changed.revision, lease, specs, now)
    }
    if (leases.claims.get(lease) + specs.length > this.limits.claimsPerLease) {
      return exceeded(
        `lease ${request.lease} has ${leases.claims.get(lease)} claims; the maximum is ${this.limits.claimsPerLease}. Release some, or use another lease.`,
      )
    }
    if (request.ifFree && !this.#admission.areFree(specs)) return this.#admission.busy(specs)
    return this.#add(++ledger.revision, lease, specs, now)
  }

  #add(revision: Revision, lease: number, specs: readonly ClaimSpec[], now: number): Claimed {
    const ahead = this.#admission.ahead(this.#ledger.addClaims(revision, lease, specs, now))
    return { outcome: 'claimed', revision, token: revision, holds: ahead.length === 0, ahead }
  }

  #release(request: ReleaseRequest, now: number): Changed | Refused {
    const ledger = this.#ledger
    const { claims } = ledger.tables
    const found: number[] = []
    for (const key of request.keys) {
      const claim = this.#findClaim(request.lease, key, request.token)
      if (typeof claim !== 'number') return refused(claim)
      found.push(claim)
    }
    const revision = ++ledger.revision
    const keys = found.map((claim) => claims.key.get(claim))
    for (const claim of found) ledger.releaseClaim(revision, claim, now, RELEASED)
    for (const key of keys) ledger.promoteWaiters(revision, key, now)
    ledger.tables.keys.forgetIdle()
    return { revision }
  }

  #update(request: UpdateRequest, now: number): Changed | Refused {
    const claim = this.#findClaim(request.lease, request.key, request.token)
    if (typeof claim !== 'number') return refused(claim)
    const revision = ++this.#ledger.revision
    this.#ledger.updateClaim(revision, claim, request.value, now)
    return { revision }
  }

  #findClaim(id: LeaseId, name: Key, token: number): number | Refusal {
    const { leases, claims, keys } = this.#ledger.tables
    const lease = leases.findAgain(id)
    if (lease === NONE) return noLease(this.#ledger, id)
    const key = keys.find(name)
    const claim = key === NONE ? NONE : this.#ledger.queues.find(key, token)
    if (claim !== NONE && claims.lease.get(claim) === lease) return claim
    const first = key === NONE ? NONE : keys.first.get(key)
    const now = first === NONE ? 'it has no claims' : `token ${claims.token.get(first)} is first`
    return {
      code: 'claim-not-found',
      message: `lease ${id} has no claim with token ${token} on ${show(name)}: it was released or removed (now ${now})`,
    }
  }

  #checkParent(id: LeaseId, parent: number): Complaint {
    const { leases } = this.#ledger.tables
    if (parent === NONE) return noLease(this.#ledger, id)
    if (leases.children.get(parent) >= this.limits.childrenPerLease) {
      return {
        code: 'limit-exceeded',
        message: `lease ${id} has ${this.limits.childrenPerLease} child leases, the maximum. Use another parent.`,
      }
    }
    if (leases.depth(parent) >= this.limits.leaseDepth) {
      return {
        code: 'limit-exceeded',
        message: `lease ${id} is at depth ${this.limits.leaseDepth}, the maximum. Use a parent higher up.`,
      }
    }
    return undefined
  }

  /**
   * The answer to a call that must not be carried out: the earlier answer of a repeated call, or the
   * obstacle. A refusal is then remembered as the final answer, so that a copy of the call that
   * arrives later changes nothing. It is not recorded: the disk may be what is full.
   */
  #known<A extends Answer>(
    call: { readonly request?: RequestId | undefined },
    obstacle: Refusal | undefined,
  ): A | Refused | undefined {
    const { request } = call
    const known = request === undefined ? undefined : this.#ledger.requests.get(request)
    if (known !== undefined || obstacle === undefined) return known as A | undefined
    const answer = refused(obstacle)
    const isFinal = ERRORS[obstacle.code].outcome === 'refused'
    if (request !== undefined && isFinal) this.#ledger.requests.set(request, answer)
    return answer
  }

  #remember<A extends Answer>(call: { readonly request?: RequestId | undefined }, answer: A): A {
    if (call.request !== undefined) this.#ledger.remember(call.request, answer)
    return answer
  }
}
