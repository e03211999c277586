import type { End, Labels, LeaseId } from '../../port/index.ts'
import type { DeadlineSource } from './lazy-deadlines.ts'
import { bornOf, leaseId, slotOf } from './lease-id.ts'
import { IntegerRows, NONE, NumberRows, ReferenceField, Slots } from './rows.ts'

/** The leases, one row each, and the tree of parents and children. */
export class LeaseTable {
  // Nearly every renewal uses only these three, so they have rows of their own: with many leases, the
  // cost of a renewal is the cache line that must come from memory, and more short rows fit into the
  // processor's cache.
  readonly #renewals = new NumberRows(3)
  readonly #numbers = new NumberRows(4)
  readonly #integers = new IntegerRows(9)
  /** The revision of the grant; 0 if the slot is free. */
  readonly born = this.#renewals.field()
  readonly renewedAt = this.#renewals.field()
  /** No renewal extends the lease beyond this: the maximum life, or a break. */
  readonly endOfLife = this.#renewals.field()
  readonly ttl = this.#numbers.field()
  readonly grace = this.#numbers.field()
  readonly grantedAt = this.#numbers.field()
  /** When this slot will be checked next: see `LazyDeadlines`. */
  readonly checkAt = this.#numbers.field()
  readonly holder = new ReferenceField<string>()
  readonly labels = new ReferenceField<Labels>()
  /** Who broke the lease and why, if `endOfLife` comes from a break. */
  readonly cappedBy = new ReferenceField<End>()
  readonly parent = this.#integers.field()
  readonly children = this.#integers.field()
  /** Children are in the order of their grants, and claims in the order of theirs. */
  readonly firstChild = this.#integers.field()
  readonly lastChild = this.#integers.field()
  readonly nextSibling = this.#integers.field()
  readonly previousSibling = this.#integers.field()
  readonly claims = this.#integers.field()
  readonly firstClaim = this.#integers.field()
  readonly lastClaim = this.#integers.field()

  readonly slots = new Slots([
    this.#renewals,
    this.#numbers,
    this.#integers,
    this.holder,
    this.labels,
    this.cappedBy,
  ])
  #count = 0
  #lastId: LeaseId | undefined
  #lastSlot = NONE
  #lastBorn = 0

  get count(): number {
    return this.#count
  }

  id(slot: number): LeaseId {
    return leaseId(slot, this.born.get(slot))
  }

  /** The slot of a living lease, or NONE. */
  find(id: LeaseId): number {
    const slot = slotOf(id)
    if (slot < 0 || slot >= this.slots.end) return NONE
    return this.born.get(slot) === bornOf(id) ? slot : NONE
  }

  /** Like `find`, but fast for repeated lookups: one process claims with one lease. */
  findAgain(id: LeaseId): number {
    if (id === this.#lastId && this.born.get(this.#lastSlot) === this.#lastBorn)
      return this.#lastSlot
    const slot = this.find(id)
    if (slot !== NONE) {
      this.#lastId = id
      this.#lastSlot = slot
      this.#lastBorn = this.born.get(slot)
    }
    return slot
  }

  /** When the lease expires unless it is renewed. */
  deadline(slot: number): number {
    const end = this.renewedAt.get(slot) + this.ttl.get(slot) + this.grace.get(slot)
    return Math.min(end, this.endOfLife.get(slot))
  }

  /** The table for `LazyDeadlines`. */
  get deadlineSource(): DeadlineSource {
    const table = this
    return {
      checkAt: this.checkAt,
      deadline: (slot) => (table.born.get(slot) === 0 ? Infinity : table.deadline(slot)),
      get count() {
        return table.#count
      },
      get end() {
        return table.slots.end
      },
    }
  }

  /** Puts a new lease into a slot that was taken or grown to. */
  put(slot: number, born: number, holder: string, now: number): void {
    this.born.set(slot, born)
    this.holder.set(slot, holder)
    this.grantedAt.set(slot, now)
    this.renewedAt.set(slot, now)
    this.children.set(slot, 0)
    this.claims.set(slot, 0)
    this.parent.set(slot, NONE)
    this.firstChild.set(slot, NONE)
    this.lastChild.set(slot, NONE)
    this.firstClaim.set(slot, NONE)
    this.lastClaim.set(slot, NONE)
    this.#count++
  }

  /** Removes a lease and frees its slot. */
  remove(slot: number): void {
    this.born.set(slot, 0)
    this.holder.set(slot, undefined)
    this.labels.set(slot, undefined)
    this.cappedBy.set(slot, undefined)
    this.slots.free(slot)
    this.#count--
  }

  /** Adds a lease as the last child of another. */
  addChild(parent: number, child: number): void {
    const last = this.lastChild.get(parent)
    this.parent.set(child, parent)
    this.previousSibling.set(child, last)
    this.nextSibling.set(child, NONE)
    if (last === NONE) this.firstChild.set(parent, child)
    else this.nextSibling.set(last, child)
    this.lastChild.set(parent, child)
    this.children.add(parent, 1)
  }

  /** Undoes `addChild`. */
  removeFromParent(child: number): void {
    const parent = this.parent.get(child)
    if (parent === NONE) return
    const next = this.nextSibling.get(child)
    const previous = this.previousSibling.get(child)
    if (previous === NONE) this.firstChild.set(parent, next)
    else this.nextSibling.set(previous, next)
    if (next === NONE) this.lastChild.set(parent, previous)
    else this.previousSibling.set(next, previous)
    this.parent.set(child, NONE)
    this.children.add(parent, -1)
  }

  /** Sorts the children of a lease in the order of their grants. */
  sortChildren(parent: number): void {
    const children: number[] = []
    let child = this.firstChild.get(parent)
    for (; child !== NONE; child = this.nextSibling.get(child)) children.push(child)
    for (const each of children) this.removeFromParent(each)
    children.sort((one, other) => this.born.get(one) - this.born.get(other))
    for (const each of children) this.addChild(parent, each)
  }

  /** How many ancestors the lease has, itself included. */
  depth(slot: number): number {
    let depth = 0
    for (let at = slot; at !== NONE; at = this.parent.get(at)) depth++
    return depth
  }

  /** A lease and all its descendants, parents before children. */
  withDescendants(slot: number): number[] {
    const family = [slot]
    for (let at = 0; at < family.length; at++) {
      let child = this.firstChild.get(family[at]!)
      for (; child !== NONE; child = this.nextSibling.get(child)) family.push(child)
    }
    return family
  }
}
