import {
  type Busy,
  type Capped,
  type Changed,
  type Claimed,
  type ClaimRequest,
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
import type { EventLog } from './event-log.ts'
import type { Journal, Replay } from './journal.ts'
import { LeasesBySlot } from './leases-by-slot.ts'
import { Ledger } from './ledger.ts'
import { Memory } from './memory.ts'
import type { Notices } from './notices.ts'
import { expireLease, NOTHING_AHEAD, Places } from './places.ts'
import { Reader } from './reader.ts'
import { endOf, exceeded, noLease, refused } from './refusals.ts'
import { describe, describeMemory, Replayer } from './replay.ts'
import type { Answer, Refused } from './requests.ts'
import { revoke } from './revoke.ts'
import { NONE } from './rows.ts'

const RELEASED: End = { reason: 'released' }

export interface KernelOptions {
  readonly limits?: Partial<Limits> | undefined
  /** Told of every change. */
  readonly journal?: Journal | undefined
  /** Told what the holders of leases must learn. */
  readonly notices?: Notices | undefined
  /** The revision to start after; tokens will be greater than it. */
  readonly revision?: Revision | undefined
  /**
   * What ends a lease whose time is over. `timed`, the default: the kernel's own deadlines, by the
   * `now` of each call. `commanded`: only `bySlot.expire`, when whoever runs the kernel has decided it.
   */
  readonly expiry?: 'timed' | 'commanded' | undefined
}

/**
 * The state machine of leases: `(state, command, now) -> answer`, and nothing else. No I/O, no
 * clock, no randomness, no promises: the same commands at the same times give the same answers.
 * Every other store is measured by it.
 *
 * Each command checks everything before it changes anything, so that a refused command leaves no
 * trace. `now` is a positive time that never goes back. With an `obstacle` nothing new is carried
 * out: a repeated request gets the answer that it had, and any other one this refusal.
 */
export class Kernel {
  readonly limits: Limits
  readonly reader: Reader
  readonly bySlot: LeasesBySlot
  readonly memory: Memory
  readonly #ledger: Ledger
  readonly #places: Places
  #replayer: Replayer | undefined
  readonly #knownKey = (key: Key) => this.#ledger.tables.keys.find(key) !== NONE

  constructor(options: KernelOptions = {}) {
    this.limits = { ...DEFAULT_LIMITS, ...options.limits }
    this.#ledger = new Ledger(this.limits, {
      revision: options.revision ?? 0,
      isTimed: options.expiry !== 'commanded',
      journal: options.journal,
      notices: options.notices,
    })
    this.reader = new Reader(this.#ledger)
    this.bySlot = new LeasesBySlot(this.#ledger)
    this.memory = new Memory(this.#ledger)
    this.#places = new Places(this.#ledger, this.reader)
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

  /** No lease needs to be looked at before this time. It may be early, never late. */
  get nextDeadline(): number {
    return this.#ledger.deadlines.next
  }

  grant(request: GrantRequest, now: number, obstacle?: Refusal): Granted | Busy | Refused {
    const complaint = checkGrant(request, this.limits)
    if (complaint) return refused(complaint)
    return this.#settled(request, obstacle) ?? this.#remember(request, this.#grant(request, now))
  }

  claim(request: ClaimRequest, now: number, obstacle?: Refusal): Claimed | Busy | Refused {
    const complaint = checkClaim(request, this.limits, this.#knownKey)
    if (complaint) return refused(complaint)
    return this.#settled(request, obstacle) ?? this.#remember(request, this.#claim(request, now))
  }

  release(request: ReleaseRequest, now: number, obstacle?: Refusal): Changed | Refused {
    const complaint = checkRelease(request, this.limits, this.#knownKey)
    if (complaint) return refused(complaint)
    return this.#settled(request, obstacle) ?? this.#remember(request, this.#release(request, now))
  }

  update(request: UpdateRequest, now: number, obstacle?: Refusal): Changed | Refused {
    const complaint = checkUpdate(request, this.limits)
    if (complaint) return refused(complaint)
    return this.#settled(request, obstacle) ?? this.#remember(request, this.#update(request, now))
  }

  revoke(request: RevokeRequest, now: number, obstacle?: Refusal): Revoked | Refused {
    const complaint = checkRevoke(request, this.limits)
    if (complaint) return refused(complaint)
    return (
      this.#settled(request, obstacle) ??
      this.#remember(request, revoke(this.#ledger, request, now))
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
   * Expires what is due, looking at no more than `most` leases. Answers whether there may be more.
   * Each lease that ends does so, with all under it, in a revision of its own.
   */
  expire(now: number, most: number): boolean {
    for (let looked = 0; looked < most; looked++) {
      const slot = this.#ledger.nextDue(now)
      if (slot === undefined) return false
      if (slot !== NONE) expireLease(this.#ledger, slot, now)
    }
    return this.nextDeadline <= now
  }

  /** The claims of a living lease, for its watch; `undefined` where there is no such lease. */
  standing(id: LeaseId): { readonly slot: number; readonly claims: OwnClaim[] } | undefined {
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

  /** Every slot of a lease is below this. */
  get slots(): number {
    return this.#ledger.tables.leases.slots.end
  }

  /** Tells the living leases of a range of slots, as if they had just been granted. */
  describe(from: number, to: number, journal: Journal): void {
    describe(this.#ledger, from, to, journal)
  }

  /** Tells what is remembered beside the leases, a bounded part with each step. */
  describeMemory(journal: Journal): Generator<void> {
    return describeMemory(this.#ledger, journal)
  }

  /** A kernel that can be described as this one is now, while this one goes on. Takes no commands. */
  copy(): Kernel {
    const copy = new Kernel({ limits: this.limits, revision: this.revision })
    copy.#ledger.copy(this.#ledger)
    return copy
  }

  /** Rebuilds: tell the result what a journal was told, then call `settle`. */
  replay(): Replay {
    this.#replayer = new Replayer(this.#ledger)
    return this.#replayer
  }

  /** During a replay: only what is told after this revision is kept as events. */
  startEvents(revision: Revision): void {
    this.#ledger.events.restart(Math.max(revision, this.#ledger.revision))
  }

  /**
   * Ends a replay. Every lease gets its full ttl from `now`, since its renewals were not told; and
   * `lastTime`, the last time that the old kernel is known to have seen, becomes `now`, so that
   * no lease's life is shortened by the time between.
   */
  settle(now: number, lastTime: number): void {
    this.#replayer?.finish()
    this.#replayer = undefined
    this.#ledger.settle(now, lastTime)
  }

  /**
   * Revisions, and so tokens, go on above this one. A watch from a revision that is skipped is told to
   * read again, because the change that it saw there is lost. `after` is the last revision whose
   * change is certainly not lost; the present one if not given.
   */
  raise(revision: Revision, after = this.#ledger.revision): void {
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
        `the store has its ${this.limits.leases} leases: end some, or raise the limit`,
      )
    }
    if (specs) {
      if (specs.length > this.limits.claimsPerLease) {
        return exceeded(
          `a lease has at most ${this.limits.claimsPerLease} claims, not ${specs.length}: claim fewer, or use several leases`,
        )
      }
      const complaint = this.#places.prepare(specs, now)
      if (complaint) return refused(complaint)
      if (request.ifFree && !this.#places.areFree(specs)) return this.#places.busy(specs)
    }
    // Looked up last: making room on the keys may have ended the parent.
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
    const ahead = this.#places.ahead(ledger.addClaims(revision, lease, specs, now))
    const holds = ahead.length === 0
    return { outcome: 'granted', lease: id, revision, token: revision, holds, ahead }
  }

  #claim(request: ClaimRequest, now: number): Claimed | Busy | Refused {
    const ledger = this.#ledger
    const { leases } = ledger.tables
    const specs = request.claims
    const complaint = this.#places.prepare(specs, now)
    if (complaint) return refused(complaint)
    // Looked up last: making room on the keys may have ended this very lease.
    const lease = leases.findAgain(request.lease)
    if (lease === NONE) return refused(noLease(this.#ledger, request.lease))
    if (leases.claims.get(lease) + specs.length > this.limits.claimsPerLease) {
      return exceeded(
        `lease ${request.lease} has ${leases.claims.get(lease)} claims of at most ${this.limits.claimsPerLease}: release some, or use another lease`,
      )
    }
    if (request.ifFree && !this.#places.areFree(specs)) return this.#places.busy(specs)
    const revision = ++ledger.revision
    const ahead = this.#places.ahead(ledger.addClaims(revision, lease, specs, now))
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
    for (const claim of found) {
      const key = claims.key.get(claim)
      ledger.releaseClaim(revision, claim, now, RELEASED)
      ledger.settleKey(revision, key, now)
    }
    ledger.tables.keys.tidy()
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
    const claim = key === NONE ? NONE : this.#ledger.lines.find(key, token)
    if (claim !== NONE && claims.lease.get(claim) === lease) return claim
    const first = key === NONE ? NONE : keys.first.get(key)
    const now =
      first === NONE ? 'nobody has claimed it' : `token ${claims.token.get(first)} is first`
    return {
      code: 'claim-not-found',
      message: `lease ${id} has no claim with token ${token} on ${show(name)}: it was released or taken away (now ${now})`,
    }
  }

  #checkParent(id: LeaseId, parent: number): Complaint {
    const { leases } = this.#ledger.tables
    if (parent === NONE) return noLease(this.#ledger, id)
    if (leases.children.get(parent) >= this.limits.childrenPerLease) {
      return {
        code: 'limit-exceeded',
        message: `lease ${id} has ${this.limits.childrenPerLease} leases under it, the most that it may have`,
      }
    }
    if (leases.depth(parent) >= this.limits.leaseDepth) {
      return {
        code: 'limit-exceeded',
        message: `lease ${id} is ${this.limits.leaseDepth} deep, the deepest that a lease may be: use a parent higher up`,
      }
    }
    return undefined
  }

  /**
   * The answer of a call that is not to be carried out: what it was answered before, where it is a
   * repeated one, or the obstacle. A refusal is then its answer for good, so that a copy which comes
   * later changes nothing. The journal is not told of it: its disk may be what has no space.
   */
  #settled<A extends Answer>(
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
