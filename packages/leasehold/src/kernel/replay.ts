import type { End, Key, LeaseId, Revision, Tenure, Time, Token } from '../port/index.ts'
import type { GrantedClaim, GrantedLease, Journal, Replay } from './journal.ts'
import { bornOf, leaseId } from './lease-id.ts'
import type { Ledger } from './ledger.ts'
import type { Answer } from './requests.ts'
import { NONE } from './rows.ts'

/** How much `describeMemory` tells in one step. */
const STEP = 256

/**
 * Rebuilds a ledger from what a journal was told. Nothing is decided and nothing judged by time: it
 * happened. Told in order it gives the state that was; a description of a kernel, whose leases
 * were described one after the other while it went on changing, may tell a child before its parent
 * and claims out of their order, and that gives the state too once all has been told.
 */
export class Replayer implements Replay {
  readonly #ledger: Ledger
  /** Children whose parent has not been told yet, by the slot of the parent. */
  readonly #waiting = new Map<number, Set<number>>()
  /** The keys that claims left in the revision that is being told, and when. */
  #left: number[] = []
  #leftAt: Time = 0
  #revision: Revision = 0
  /** Since when claims hold that were told to hold, and do not as far as has been told by now. */
  readonly #heldSince = new Map<number, Time>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
    ledger.events.restart(Infinity)
  }

  granted(revision: Revision, slot: number, lease: GrantedLease): void {
    const { leases } = this.#ledger.tables
    // The lowest free slot is given out, so none lies beyond the first that was never used.
    if (slot > leases.slots.end) {
      throw new Error(
        `a lease was granted slot ${slot}, but only slots up to ${leases.slots.end} could be given out`,
      )
    }
    leases.slots.reach(slot)
    if (leases.born.get(slot) !== 0) throw new Error(`slot ${slot} has a lease already`)
    leases.put(slot, lease.born, lease.holder, lease.at)
    leases.ttl.set(slot, lease.ttl)
    leases.grace.set(slot, lease.grace)
    leases.endOfLife.set(slot, lease.endOfLife)
    leases.labels.set(slot, lease.labels)
    if (lease.parent !== NONE) this.#adopt(lease.parent, slot)
    for (const child of this.#waiting.get(slot) ?? []) leases.adopt(slot, child)
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
    this.#unadopt(slot)
    this.#abandon(slot)
    leases.remove(slot)
  }

  claimed(revision: Revision, slot: number, told: GrantedClaim): void {
    const { claims, keys } = this.#ledger.tables
    this.#living(slot)
    this.#reached(revision)
    const claim = claims.slots.take()
    claims.setMode(claim, told.mode, told.limit)
    claims.value.set(claim, told.value)
    claims.token.set(claim, told.token)
    claims.claimedAt.set(claim, told.at)
    claims.heldSince.set(claim, 0)
    claims.key.set(claim, keys.ensure(told.key))
    this.#join(slot, claim)
    this.#ledger.attach(slot, claim)
    this.#ledger.lines.insert(claim)
    this.#event('claimed', revision, claim, told.at, undefined)
    const key = claims.key.get(claim)
    const inOrder = claims.nextOnKey.get(claim) === NONE
    if (inOrder) this.#ledger.lines.advance(key, told.at, this.#holds)
    else this.#ledger.lines.settle(key, this.#holds, this.#waits)
    if (told.heldSince === 0) return
    // It may have to wait still, as far as has been told by now.
    if (claims.heldSince.get(claim) !== 0) claims.heldSince.set(claim, told.heldSince)
    else this.#heldSince.set(claim, told.heldSince)
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

  /** A claim comes to hold: since the time that was told, or since the one before it left. */
  readonly #holds = (claim: number): void => {
    const { claims } = this.#ledger.tables
    const told = this.#heldSince.get(claim)
    claims.heldSince.set(claim, told ?? Math.max(claims.claimedAt.get(claim), this.#leftAt))
  }

  /** A claim that seemed to hold does not: one that stands before it was told after it. */
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
    // A description tells the tenures last: up to its last stamp all of them, and later ones too.
    const isNew = revision > ledger.events.completeAfter && !ledger.tenures.has(claim)
    if (claims.heldSince.get(claim) !== 0 && isNew) ledger.tenures.add(claim, at, end)
    ledger.takeOut(claim)
    this.#heldSince.delete(claim)
    this.#left.push(key)
    this.#leftAt = at
  }

  #event(
    type: 'claimed' | 'updated' | 'removed',
    revision: Revision,
    claim: number,
    at: Time,
    end: End | undefined,
  ): void {
    const { events } = this.#ledger
    if (revision > events.completeAfter) events.add(type, revision, claim, at, end)
  }

  /**
   * Claims of one lease with one token were made in one call. They stand side by side in its list
   * of claims and are told one after the other, so that only the latest need be looked at.
   */
  #join(slot: number, claim: number): void {
    const { leases, claims } = this.#ledger.tables
    const latest = leases.lastClaim.get(slot)
    claims.together.set(claim, claim)
    if (latest === NONE || claims.token.get(latest) !== claims.token.get(claim)) return
    claims.together.set(claim, claims.together.get(latest))
    claims.together.set(latest, claim)
  }

  #adopt(parent: number, child: number): void {
    const { leases } = this.#ledger.tables
    if (parent < leases.slots.end && leases.born.get(parent) !== 0) {
      leases.adopt(parent, child)
      return
    }
    this.#await(parent, child)
  }

  #await(parent: number, child: number): void {
    const waiting = this.#waiting.get(parent) ?? new Set()
    this.#waiting.set(parent, waiting.add(child))
  }

  /**
   * A lease leaves its slot while there are children under it: either they are told to have ended
   * next, or they were described later and belong to the next lease in this slot.
   */
  #abandon(parent: number): void {
    const { leases } = this.#ledger.tables
    for (let child = leases.firstChild.get(parent); child !== NONE; ) {
      leases.orphan(child)
      this.#await(parent, child)
      child = leases.firstChild.get(parent)
    }
  }

  #unadopt(slot: number): void {
    const { leases } = this.#ledger.tables
    leases.orphan(slot)
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
    const claim = found === NONE ? NONE : this.#ledger.lines.find(found, token)
    if (claim !== NONE && claims.lease.get(claim) === slot) return claim
    throw new Error(`the lease in slot ${slot} has no claim with token ${token} on ${key}`)
  }

  covers(slots: number): void {
    this.#ledger.tables.leases.slots.reach(slots - 1)
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

  /** Lets those hold whose turn has come with the last revision that was told. */
  finish(): void {
    const left = this.#left
    this.#left = []
    for (const key of left) this.#ledger.lines.advance(key, this.#leftAt, this.#holds)
  }

  /**
   * A change of this revision is told. What a revision removes it removes together, so nobody comes
   * to hold before all of it has been told.
   */
  #reached(revision: Revision): void {
    if (revision !== this.#revision) this.finish()
    this.#revision = revision
    const { revision: last, events } = this.#ledger
    if (revision <= last) return
    // Every revision has a change, so one that is left out was skipped: see `Kernel.raise`.
    if (revision > last + 1 && last >= events.completeAfter) events.skip(last, revision - 1)
    this.#ledger.revision = revision
  }
}

/** Tells the living leases of a range of slots: see `Kernel.describe`. */
export function describe(ledger: Ledger, from: number, to: number, journal: Journal): void {
  const { leases, claims } = ledger.tables
  for (let slot = from; slot < Math.min(to, leases.slots.end); slot++) {
    const born = leases.born.get(slot)
    if (born === 0) continue
    journal.granted(born, slot, ledger.describeLease(slot))
    const cap = leases.cappedBy.get(slot)
    if (cap) journal.capped(born, slot, leases.grantedAt.get(slot), leases.endOfLife.get(slot), cap)
    let claim = leases.firstClaim.get(slot)
    for (; claim !== NONE; claim = claims.nextOfLease.get(claim)) {
      journal.claimed(claims.token.get(claim), slot, ledger.describeClaim(claim))
    }
  }
}

/** Tells answers, tenures and ended leases: see `Kernel.describeMemory`. */
export function* describeMemory(ledger: Ledger, journal: Journal): Generator<void> {
  let steps = 0
  for (const [request, answer] of ledger.requests.entries()) {
    journal.answered(request, answer)
    if (++steps % STEP === 0) yield
  }
  for (const [born, end] of ledger.ended.entries()) {
    // The slot is not remembered: what is asked later is found by the revision alone.
    journal.remembered(leaseId(0, born), end)
    if (++steps % STEP === 0) yield
  }
  const { keys } = ledger.tables
  for (let key = 0; key < keys.slots.end; key++) {
    const name = keys.name.get(key)
    if (name !== undefined) {
      for (const tenure of ledger.tenures.of(key).reverse()) journal.tenure(name, tenure)
    }
    if (++steps % STEP === 0) yield
  }
}
