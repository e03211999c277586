import type { End, Labels, LeaseId } from '../port/index.ts'
import type { Timed } from './lazy-deadlines.ts'
import { bornOf, leaseId, slotOf } from './lease-id.ts'
import { IntegerRows, NONE, NumberRows, ReferenceField, Slots } from './rows.ts'

/** The leases, a row each, and the tree that parents and children make. */
export class LeaseTable {
  readonly #numbers = new NumberRows(7)
  readonly #integers = new IntegerRows(9)
  // A renewal touches the first three, which lie side by side: beside many leases, what it costs is the
  // line of memory that they are in.
  /** The revision of the grant; 0 where the slot is free. */
  readonly born = this.#numbers.field()
  readonly renewedAt = this.#numbers.field()
  /** No renewal goes past this: the maximum life, or a break. */
  readonly endOfLife = this.#numbers.field()
  readonly ttl = this.#numbers.field()
  readonly grace = this.#numbers.field()
  readonly grantedAt = this.#numbers.field()
  /** When the deadlines will look at this slot next: see `LazyDeadlines`. */
  readonly lookAt = this.#numbers.field()
  readonly holder = new ReferenceField<string>()
  readonly labels = new ReferenceField<Labels>()
  /** Who capped the life and why, where it was a break. */
  readonly cappedBy = new ReferenceField<End>()
  readonly parent = this.#integers.field()
  readonly children = this.#integers.field()
  /** Children are in the order in which they were granted, and so are claims. */
  readonly firstChild = this.#integers.field()
  readonly lastChild = this.#integers.field()
  readonly nextSibling = this.#integers.field()
  readonly previousSibling = this.#integers.field()
  readonly claims = this.#integers.field()
  readonly firstClaim = this.#integers.field()
  readonly lastClaim = this.#integers.field()

  readonly slots = new Slots([
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

  /** As `find`, where the same lease is often asked for again: one process claims with one lease. */
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

  /** The leases as the deadlines see them. */
  get timed(): Timed {
    const table = this
    return {
      lookAt: this.lookAt,
      deadline: (slot) => (table.born.get(slot) === 0 ? Infinity : table.deadline(slot)),
      get count() {
        return table.#count
      },
      get end() {
        return table.slots.end
      },
    }
  }

  /** Puts a new lease into a slot that the table gave out or was made to reach. */
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

  /** Takes a lease out of the table; its slot can be given out again. */
  remove(slot: number): void {
    this.born.set(slot, 0)
    this.holder.set(slot, undefined)
    this.labels.set(slot, undefined)
    this.cappedBy.set(slot, undefined)
    this.slots.give(slot)
    this.#count--
  }

  /** Puts a lease under another, behind the children that are there. */
  adopt(parent: number, child: number): void {
    const last = this.lastChild.get(parent)
    this.parent.set(child, parent)
    this.previousSibling.set(child, last)
    this.nextSibling.set(child, NONE)
    if (last === NONE) this.firstChild.set(parent, child)
    else this.nextSibling.set(last, child)
    this.lastChild.set(parent, child)
    this.children.add(parent, 1)
  }

  /** Undoes `adopt`. */
  orphan(child: number): void {
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

  /** Puts the children of a lease in the order in which they were granted. */
  sortChildren(parent: number): void {
    const children: number[] = []
    let child = this.firstChild.get(parent)
    for (; child !== NONE; child = this.nextSibling.get(child)) children.push(child)
    for (const each of children) this.orphan(each)
    children.sort((one, other) => this.born.get(one) - this.born.get(other))
    for (const each of children) this.adopt(parent, each)
  }

  /** How many leases stand above this one, itself included. */
  depth(slot: number): number {
    let depth = 0
    for (let at = slot; at !== NONE; at = this.parent.get(at)) depth++
    return depth
  }

  /** A lease and all leases under it, parents before children. */
  family(slot: number): number[] {
    const family = [slot]
    for (let at = 0; at < family.length; at++) {
      let child = this.firstChild.get(family[at]!)
      for (; child !== NONE; child = this.nextSibling.get(child)) family.push(child)
    }
    return family
  }
}
