import type { ClaimSpec, End, GrantRequest, Limits, RequestId, Revision } from '../port/index.ts'
import { EventLog, RememberedAnswers, Tenures, TwoGenerationMap } from './history/index.ts'
import type { Answer, ChangeSink, GrantedClaim, GrantedLease, NoticeSink } from './outputs/index.ts'
import { LazyDeadlines, NONE, Queues, Tables } from './tables/index.ts'

export interface LedgerOptions {
  readonly revision: Revision
  readonly isTimed: boolean
  readonly changeSink: ChangeSink | undefined
  readonly noticeSink: NoticeSink | undefined
}

/**
 * The kernel's state and its elementary changes. Nothing is decided here: the caller has checked
 * that the change is allowed. Every change goes to the change sink, to the events, and to the
 * notice sink if a holder must know of it.
 */
export class Ledger {
  readonly limits: Limits
  readonly tables: Tables
  readonly queues: Queues
  readonly events: EventLog
  readonly tenures: Tenures
  readonly deadlines: LazyDeadlines
  readonly requests: RememberedAnswers
  /** How recently ended leases ended, by the revision of their grant. */
  readonly ended: TwoGenerationMap<Revision, End>
  revision: Revision
  /** Leases end at their deadlines: see `KernelOptions.expiry`. */
  readonly isTimed: boolean
  readonly #changeSink: ChangeSink | undefined
  readonly #noticeSink: NoticeSink | undefined

  constructor(limits: Limits, options: LedgerOptions) {
    const { revision, isTimed, changeSink, noticeSink } = options
    this.limits = limits
    this.revision = revision
    this.isTimed = isTimed
    this.tables = new Tables(limits)
    this.deadlines = new LazyDeadlines(this.tables.leases.deadlineSource)
    this.queues = new Queues(this.tables)
    this.events = new EventLog(this.tables, limits.events, revision)
    this.tenures = new Tenures(this.tables, limits.history, limits.historyPerKey)
    this.requests = new RememberedAnswers(limits.requests)
    this.ended = new TwoGenerationMap(limits.ended)
    this.#changeSink = changeSink
    this.#noticeSink = noticeSink
  }

  /** Copies the other ledger into this empty one, for reading only. */
  copy(from: Ledger): void {
    this.tables.copy(from.tables)
    this.requests.copy(from.requests)
    this.ended.copy(from.ended)
    this.tenures.copy(from.tenures)
  }

  /** After a replay: see `Kernel.finishReplay`. */
  finishReplay(now: number, lastTime: number): void {
    const { leases, keys } = this.tables
    leases.slots.recount((slot) => leases.born.get(slot) === 0)
    for (let slot = 0; slot < leases.slots.end; slot++) {
      leases.renewedAt.set(slot, now)
      leases.endOfLife.set(slot, leases.endOfLife.get(slot) + (now - lastTime))
      // A description reports leases in slot order.
      if (leases.children.get(slot) > 1) leases.sortChildren(slot)
    }
    keys.forgetIdle()
    if (this.isTimed) this.deadlines.rescheduleAll()
  }

  addLease(revision: Revision, spec: GrantRequest, parent: number, now: number): number {
    const { leases } = this.tables
    const slot = leases.slots.take()
    leases.put(slot, revision, spec.holder, now)
    leases.ttl.set(slot, spec.ttl)
    leases.grace.set(slot, spec.grace ?? 0)
    leases.endOfLife.set(slot, now + (spec.maxLife ?? Infinity))
    leases.labels.set(slot, spec.labels)
    if (parent !== NONE) leases.addChild(parent, slot)
    this.schedule(slot)
    this.#changeSink?.granted(revision, slot, this.describeLease(slot))
    return slot
  }

  /** Adds the claims of one call at the ends of their queues. Returns the first claim. */
  addClaims(revision: Revision, lease: number, specs: readonly ClaimSpec[], now: number): number {
    const { claims, keys } = this.tables
    let first = NONE
    let last = NONE
    for (const spec of specs) {
      const claim = claims.slots.take()
      claims.setMode(claim, spec.mode ?? 'exclusive', spec.limit ?? 0)
      claims.value.set(claim, spec.value)
      claims.token.set(claim, revision)
      claims.claimedAt.set(claim, now)
      claims.heldSince.set(claim, 0)
      claims.key.set(claim, keys.ensure(spec.key))
      this.attach(lease, claim)
      this.queues.append(claim, now)
      if (first === NONE) first = claim
      else claims.nextInCall.set(last, claim)
      claims.nextInCall.set(claim, first)
      last = claim
      this.events.add('claimed', revision, claim, now, undefined)
      if (claims.heldSince.get(claim) !== 0)
        this.events.add('held', revision, claim, now, undefined)
      this.#changeSink?.claimed(revision, lease, this.describeClaim(claim))
    }
    return first
  }

  /**
   * Removes one claim. Call `promoteWaiters` after all claims of the change are removed: a replay
   * does the same, so its events have the same order.
   */
  removeClaim(revision: Revision, claim: number, now: number, end: End): void {
    const { claims } = this.tables
    this.events.add('removed', revision, claim, now, end)
    if (claims.heldSince.get(claim) !== 0) this.tenures.add(claim, now, end)
    this.takeOut(claim)
  }

  /** Takes a claim out of its lease, its call and its queue, and frees its row. */
  takeOut(claim: number): void {
    const { claims } = this.tables
    this.detach(claims.lease.get(claim), claim)
    claims.leaveCall(claim)
    this.queues.remove(claim)
    claims.value.set(claim, undefined)
    claims.slots.free(claim)
  }

  /** Like `removeClaim`, for a claim whose lease stays alive. */
  releaseClaim(revision: Revision, claim: number, now: number, end: End): void {
    const { claims, keys } = this.tables
    const lease = claims.lease.get(claim)
    const name = keys.name.get(claims.key.get(claim))!
    const token = claims.token.get(claim)
    this.#changeSink?.released(revision, lease, now, name, token, end)
    if (end.reason !== 'released') this.#noticeSink?.removed(lease, revision, name, token, end)
    this.removeClaim(revision, claim, now, end)
  }

  /** After claims were removed from a key: lets waiting claims hold, and notifies their leases. */
  promoteWaiters(revision: Revision, key: number, now: number): void {
    const { claims, keys } = this.tables
    if (keys.held.get(key) === keys.count.get(key)) return
    this.queues.advance(key, now, (claim) => {
      this.events.add('held', revision, claim, now, undefined)
      if (claims.allHold(claim)) {
        this.#noticeSink?.holds(claims.lease.get(claim), revision, claims.token.get(claim))
      }
    })
  }

  /**
   * Ends these leases in one revision. All their claims are removed before any waiting claim is
   * promoted: otherwise a lease that is about to end could hold for an instant.
   */
  endLeases(revision: Revision, slots: readonly number[], now: number, end: End): number {
    const { leases, claims } = this.tables
    const keys: number[] = []
    let removed = 0
    for (const slot of slots) {
      this.#noticeSink?.gone(slot, end)
      this.#changeSink?.ended(revision, slot, now, end)
      for (let claim = leases.firstClaim.get(slot); claim !== NONE; removed++) {
        const next = claims.nextOfLease.get(claim)
        keys.push(claims.key.get(claim))
        this.removeClaim(revision, claim, now, end)
        claim = next
      }
    }
    // Children come after their parents. In reverse order, no parent is removed before its child.
    for (let at = slots.length - 1; at >= 0; at--) {
      const slot = slots[at]!
      this.ended.set(leases.born.get(slot), end)
      leases.removeFromParent(slot)
      leases.remove(slot)
    }
    for (const key of keys) this.promoteWaiters(revision, key, now)
    this.tables.keys.forgetIdle()
    return removed
  }

  capLease(revision: Revision, slot: number, now: number, endOfLife: number, end: End): void {
    const { leases } = this.tables
    leases.endOfLife.set(slot, endOfLife)
    leases.cappedBy.set(slot, end)
    this.schedule(slot)
    this.#changeSink?.capped(revision, slot, now, endOfLife, end)
    this.#noticeSink?.capped(slot, endOfLife - now, end)
  }

  updateClaim(revision: Revision, claim: number, value: string | undefined, now: number): void {
    const { claims, keys } = this.tables
    claims.value.set(claim, value)
    this.events.add('updated', revision, claim, now, undefined)
    const name = keys.name.get(claims.key.get(claim))!
    const lease = claims.lease.get(claim)
    this.#changeSink?.updated(revision, lease, now, name, claims.token.get(claim), value)
  }

  remember(request: RequestId, answer: Answer): void {
    this.requests.set(request, answer)
    this.#changeSink?.answered(request, answer)
  }

  /** Makes sure that this lease is checked when it is due, or before. */
  schedule(slot: number): void {
    if (this.isTimed) this.deadlines.schedule(slot)
  }

  /** The next lease that is due: see `LazyDeadlines.nextDue`. */
  nextDue(now: number): number | undefined {
    return this.deadlines.nextDue(now)
  }

  /** Adds a claim as the last one of its lease. */
  attach(lease: number, claim: number): void {
    const { leases, claims } = this.tables
    const last = leases.lastClaim.get(lease)
    claims.lease.set(claim, lease)
    claims.previousOfLease.set(claim, last)
    claims.nextOfLease.set(claim, NONE)
    if (last === NONE) leases.firstClaim.set(lease, claim)
    else claims.nextOfLease.set(last, claim)
    leases.lastClaim.set(lease, claim)
    leases.claims.add(lease, 1)
  }

  detach(lease: number, claim: number): void {
    const { leases, claims } = this.tables
    const next = claims.nextOfLease.get(claim)
    const previous = claims.previousOfLease.get(claim)
    if (previous === NONE) leases.firstClaim.set(lease, next)
    else claims.nextOfLease.set(previous, next)
    if (next === NONE) leases.lastClaim.set(lease, previous)
    else claims.previousOfLease.set(next, previous)
    leases.claims.add(lease, -1)
  }

  describeLease(slot: number): GrantedLease {
    const { leases } = this.tables
    return {
      born: leases.born.get(slot),
      at: leases.grantedAt.get(slot),
      holder: leases.holder.get(slot)!,
      ttl: leases.ttl.get(slot),
      grace: leases.grace.get(slot),
      endOfLife: leases.endOfLife.get(slot),
      parent: leases.parent.get(slot),
      labels: leases.labels.get(slot),
    }
  }

  describeClaim(claim: number): GrantedClaim {
    const { claims, keys } = this.tables
    return {
      at: claims.claimedAt.get(claim),
      key: keys.name.get(claims.key.get(claim))!,
      token: claims.token.get(claim),
      mode: claims.mode(claim),
      limit: claims.limit(claim),
      value: claims.value.get(claim),
      heldSince: claims.heldSince.get(claim),
    }
  }
}
