import type { End, Event, Key, LeaseId, Revision, Tenure, Time, Token } from '../port/index.ts'
import type { Ledger } from './ledger.ts'
import type { Answer, ChangeSink, GrantedClaim, GrantedLease, Replay } from './outputs/index.ts'
import { bornOf, leaseId, NONE } from './tables/index.ts'

/** How many entries `describeRetained` reports in one step. */
const STEP = 256

/**
 * Rebuilds a ledger from recorded changes. It decides nothing and checks no deadline. The description
 * of a kernel, made while the kernel changes, may have a child before its parent and claims out of
 * order. It gives the same state as the changes in order, once all of it has been replayed.
 */
export class Replayer implements Replay {
  readonly #ledger: Ledger
  /** Children whose parent was not replayed yet, by the slot of the parent. */
  readonly #waiting = new Map<number, Set<number>>()
  /** The keys from which the current revision removed claims, and when. */
  #left: number[] = []
  #leftAt: Time = 0
  #revision: Revision = 0
  /** When claims began to hold that are recorded as holding, but do not hold yet in this replay. */
  readonly #heldSince = new Map<number, Time>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
    ledger.events.restart(Infinity)
  }

  granted(revision: Revision, slot: number, lease: GrantedLease): void {
    const { leases } = this.#ledger.tables
    // Only the lowest free slot is given out, so no slot is beyond the first unused one.
    if (slot > leases.slots.end) {
      throw new Error(
        `a lease was granted slot ${slot}, but only slots up to ${leases.slots.end} could be given out`,
      )
    }
    leases.slots.growTo(slot)
    if (leases.born.get(slot) !== 0) throw new Error(`slot ${slot} has a lease already`)
    leases.put(slot, lease.born, lease.holder, lease.at)
    leases.ttl.set(slot, lease.ttl)
    leases.grace.set(slot, lease.grace)
    leases.endOfLife.set(slot, lease.endOfLife)
    leases.labels.set(slot, lease.labels)
    if (lease.parent !== NONE) this.#addChild(lease.parent, slot)
    for (const child of this.#waiting.get(slot) ?? []) leases.addChild(slot, child)
    this.#waiting.delete(slot)
    this.#reached(revision)
  }

  capped(revision: Revision, slot: number, _at: Time, endOfLife: Time, end: End): void {
    const { leases } = this.#ledger.tables
    this.#living(slot)
    leases.endOfLife.set(slot, endOfLife)
    leases.cappedBy.set(slot, end)
    this.#reached(revision)
  }

  ended(revision: Revision, slot: number, at: Time, end: End): void {
    const { leases, claims } = this.#ledger.tables
    this.#living(slot)
    this.#reached(revision)
    for (let claim = leases.firstClaim.get(slot); claim !== NONE; ) {
      const next = claims.nextOfLease.get(claim)
      this.#remove(revision, claim, at, end)
      claim = next
    }
    this.#ledger.ended.set(leases.born.get(slot), end)
    this.#removeFromParent(slot)
    this.#releaseChildren(slot)
    leases.remove(slot)
  }

  claimed(revision: Revision, slot: number, record: GrantedClaim): void {
    const { claims, keys } = this.#ledger.tables
    this.#living(slot)
    this.#reached(revision)
    // A claim that replaces another comes after the claims that waited behind the other.
    this.finish()
    const claim = claims.slots.take()
    claims.setMode(claim, record.mode, record.limit)
    claims.value.set(claim, record.value)
    claims.token.set(claim, record.token)
    claims.claimedAt.set(claim, record.at)
    claims.heldSince.set(claim, 0)
    claims.key.set(claim, keys.ensure(record.key))
    this.#join(slot, claim)
    this.#ledger.attach(slot, claim)
    this.#ledger.queues.insert(claim)
    this.#event('claimed', revision, claim, record.at, undefined)
    const key = claims.key.get(claim)
    const inOrder = claims.nextOnKey.get(claim) === NONE
    if (inOrder) this.#ledger.queues.advance(key, record.at, this.#holds)
    else this.#ledger.queues.recompute(key, this.#holds, this.#waits)
    if (record.heldSince === 0) return
    // Claims before it may still be in the ledger.
    if (claims.heldSince.get(claim) !== 0) claims.heldSince.set(claim, record.heldSince)
    else this.#heldSince.set(claim, record.heldSince)
  }

  updated(
    revision: Revision,
    slot: number,
    at: Time,
    key: Key,
    token: Token,
    value: string | undefined,
  ): void {
    const claim = this.#claim(slot, key, token)
    this.#reached(revision)
    this.#ledger.tables.claims.value.set(claim, value)
    this.#event('updated', revision, claim, at, undefined)
  }

  released(revision: Revision, slot: number, at: Time, key: Key, token: Token, end: End): void {
    const claim = this.#claim(slot, key, token)
    this.#reached(revision)
    this.#remove(revision, claim, at, end)
  }

  answered(request: string, answer: Answer): void {
    this.#ledger.requests.set(request, answer)
  }

  tenure(key: Key, tenure: Tenure): void {
    this.#ledger.tenures.restore(key, tenure)
  }

  remembered(lease: LeaseId, end: End): void {
    this.#ledger.ended.set(bornOf(lease), end)
  }

  /** A claim holds now: since the recorded time, or since the one before it was removed. */
  readonly #holds = (claim: number): void => {
    const { claims } = this.#ledger.tables
    const at = Math.max(claims.claimedAt.get(claim), this.#leftAt)
    claims.heldSince.set(claim, this.#heldSince.get(claim) ?? at)
    this.#event('held', this.#revision, claim, at, undefined)
  }

  /** A claim that held no longer does: a claim before it was replayed after it. */
  readonly #waits = (claim: number): void => {
    const { claims } = this.#ledger.tables
    this.#heldSince.set(claim, claims.heldSince.get(claim))
    claims.heldSince.set(claim, 0)
  }

  #remove(revision: Revision, claim: number, at: Time, end: End): void {
    const ledger = this.#ledger
    const { claims } = ledger.tables
    const key = claims.key.get(claim)
    this.#event('removed', revision, claim, at, end)
    // A description ends with the tenures: all up to its last stamp, and some later ones.
    const isNew = revision > ledger.events.completeAfter && !ledger.tenures.has(claim)
    if (claims.heldSince.get(claim) !== 0 && isNew) ledger.tenures.add(claim, at, end)
    ledger.takeOut(claim)
    this.#heldSince.delete(claim)
    this.#left.push(key)
    this.#leftAt = at
  }

  #event(
    type: Event['type'],
    revision: Revision,
    claim: number,
    at: Time,
    end: End | undefined,
  ): void {
    const { events } = this.#ledger
    if (revision > events.completeAfter) events.add(type, revision, claim, at, end)
  }

  /**
   * Claims of one lease with one token were made in one call. They are adjacent in its list of
   * claims and are replayed one after the other, so only the latest needs to be compared.
   */
  #join(slot: number, claim: number): void {
    const { leases, claims } = this.#ledger.tables
    const latest = leases.lastClaim.get(slot)
    claims.nextInCall.set(claim, claim)
    if (latest === NONE || claims.token.get(latest) !== claims.token.get(claim)) return
    claims.nextInCall.set(claim, claims.nextInCall.get(latest))
    claims.nextInCall.set(latest, claim)
  }

  #addChild(parent: number, child: number): void {
    const { leases } = this.#ledger.tables
    if (parent < leases.slots.end && leases.born.get(parent) !== 0) {
      leases.addChild(parent, child)
      return
    }
    this.#awaitParent(parent, child)
  }

  #awaitParent(parent: number, child: number): void {
    const waiting = this.#waiting.get(parent) ?? new Set()
    this.#waiting.set(parent, waiting.add(child))
  }

  /**
   * A lease leaves its slot while it has children. Either their ends are replayed next, or they
   * were described later and belong to the next lease in this slot.
   */
  #releaseChildren(parent: number): void {
    const { leases } = this.#ledger.tables
    for (let child = leases.firstChild.get(parent); child !== NONE; ) {
      leases.removeFromParent(child)
      this.#awaitParent(parent, child)
      child = leases.firstChild.get(parent)
    }
  }

  #removeFromParent(slot: number): void {
    const { leases } = this.#ledger.tables
    leases.removeFromParent(slot)
    for (const [parent, children] of this.#waiting) {
      if (children.delete(slot) && children.size === 0) this.#waiting.delete(parent)
    }
  }

  #living(slot: number): void {
    const { leases } = this.#ledger.tables
    if (slot >= leases.slots.end || leases.born.get(slot) === 0) {
      throw new Error(`slot ${slot} has no lease`)
    }
  }

  #claim(slot: number, key: Key, token: Token): number {
    this.#living(slot)
    const { keys, claims } = this.#ledger.tables
    const found = keys.find(key)
    const claim = found === NONE ? NONE : this.#ledger.queues.find(found, token)
    if (claim !== NONE && claims.lease.get(claim) === slot) return claim
    throw new Error(`the lease in slot ${slot} has no claim with token ${token} on ${key}`)
  }

  covers(slots: number): void {
    this.#ledger.tables.leases.slots.growTo(slots - 1)
  }

  check(): void {
    const { leases } = this.#ledger.tables
    for (const [parent, [child]] of this.#waiting) {
      throw new Error(`the lease in slot ${child} is under slot ${parent}, which has no lease`)
    }
    for (let slot = 0; slot < leases.slots.end; slot++) {
      const born = leases.born.get(slot)
      if (born === 0 || leases.parent.get(slot) === NONE) continue
      const older = leases.born.get(leases.parent.get(slot))
      if (older < born) continue
      throw new Error(
        `the lease of revision ${born} is under the lease of revision ${older}, which is not older`,
      )
    }
  }

  /** Lets the next claims hold after the last replayed revision. */
  finish(): void {
    if (this.#left.length === 0) return
    const left = this.#left
    this.#left = []
    for (const key of left) this.#ledger.queues.advance(key, this.#leftAt, this.#holds)
  }

  /**
   * Begins a change of this revision. A revision removes all its claims together, so no waiting
   * claim holds before the whole revision was replayed.
   */
  #reached(revision: Revision): void {
    if (revision !== this.#revision) this.finish()
    this.#revision = revision
    const { revision: last, events } = this.#ledger
    if (revision <= last) return
    // Every revision has a change, so a missing one was skipped: see `Kernel.skipTo`.
    if (revision > last + 1 && last >= events.completeAfter) events.skip(last, revision - 1)
    this.#ledger.revision = revision
  }
}

/** Reports the living leases of a range of slots: see `Kernel.describe`. */
export function describe(ledger: Ledger, from: number, to: number, changeSink: ChangeSink): void {
  const { leases, claims } = ledger.tables
  for (let slot = from; slot < Math.min(to, leases.slots.end); slot++) {
    const born = leases.born.get(slot)
    if (born === 0) continue
    changeSink.granted(born, slot, ledger.describeLease(slot))
    const cap = leases.cappedBy.get(slot)
    if (cap)
      changeSink.capped(born, slot, leases.grantedAt.get(slot), leases.endOfLife.get(slot), cap)
    let claim = leases.firstClaim.get(slot)
    for (; claim !== NONE; claim = claims.nextOfLease.get(claim)) {
      changeSink.claimed(claims.token.get(claim), slot, ledger.describeClaim(claim))
    }
  }
}

/** Reports answers, tenures and ended leases: see `Kernel.describeRetained`. */
export function* describeRetained(ledger: Ledger, changeSink: ChangeSink): Generator<void> {
  let steps = 0
  for (const [request, answer] of ledger.requests.entries()) {
    changeSink.answered(request, answer)
    if (++steps % STEP === 0) yield
  }
  for (const [born, end] of ledger.ended.entries()) {
    // The slot is unknown: later lookups use the revision alone.
    changeSink.remembered(leaseId(0, born), end)
    if (++steps % STEP === 0) yield
  }
  const { keys } = ledger.tables
  for (let key = 0; key < keys.slots.end; key++) {
    const name = keys.name.get(key)
    if (name !== undefined) {
      for (const tenure of ledger.tenures.of(key).reverse()) changeSink.tenure(name, tenure)
    }
    if (++steps % STEP === 0) yield
  }
}
