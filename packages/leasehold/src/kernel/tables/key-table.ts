import type { Key } from '../../port/index.ts'
import { OrderedKeys } from './ordered-keys.ts'
import { IntegerRows, NONE, NumberRows, ReferenceField, Slots } from './rows.ts'
import { SlotsByName } from './slots-by-name.ts'

/** Whether a key is in the queue of idle keys, and whether it was claimed since it was queued. */
const [ABSENT, QUEUED, USED] = [0, 1, 2] as const

/**
 * The keys, one row each: all claimed keys, and the most recent idle ones. Idle keys are kept for
 * their history, and because a used key is often used again.
 */
export class KeyTable {
  readonly #numbers = new NumberRows(1)
  readonly #integers = new IntegerRows(6)
  readonly name = new ReferenceField<Key>()
  readonly first = this.#integers.field()
  readonly last = this.#integers.field()
  /** The last of the claims that hold, or NONE. */
  readonly lastHeld = this.#integers.field()
  readonly count = this.#integers.field()
  readonly held = this.#integers.field()
  /** The number of its latest tenure, or 0: see `Tenures`. */
  readonly tenure = this.#numbers.field()
  readonly #idle = this.#integers.field()

  readonly slots = new Slots([this.#numbers, this.#integers, this.name])
  readonly ordered = new OrderedKeys(this.name, this.count)
  readonly #byName = new SlotsByName(this.name)
  readonly #idleMax: number
  readonly #idleQueue = new Fifo()
  #lastName = ''
  #lastSlot = NONE

  constructor(idleMax: number) {
    this.#idleMax = idleMax
  }

  /** The slot of a key that is known, claimed or not, or NONE. */
  find(name: Key): number {
    // One call looks up the same key several times.
    if (name !== this.#lastName) {
      this.#lastName = name
      this.#lastSlot = this.#byName.find(name)
    }
    return this.#lastSlot
  }

  /** The slot of a key, created if it is new. A new key is idle until it is claimed. */
  ensure(name: Key): number {
    const known = this.find(name)
    if (known !== NONE) return known
    const slot = this.slots.take()
    this.name.set(slot, name)
    this.first.set(slot, NONE)
    this.last.set(slot, NONE)
    this.lastHeld.set(slot, NONE)
    this.count.set(slot, 0)
    this.held.set(slot, 0)
    this.tenure.set(slot, 0)
    this.#idle.set(slot, QUEUED)
    this.#idleQueue.push(slot)
    this.#byName.add(slot)
    this.#lastSlot = slot
    this.ordered.add(slot)
    return slot
  }

  /** A claim was added. */
  claimAdded(slot: number): void {
    this.count.add(slot, 1)
    if (this.#idle.get(slot) === QUEUED) this.#idle.set(slot, USED)
  }

  /** A claim was removed. */
  claimRemoved(slot: number): void {
    if (this.count.add(slot, -1) > 0 || this.#idle.get(slot) !== ABSENT) return
    this.#idle.set(slot, QUEUED)
    this.#idleQueue.push(slot)
  }

  /**
   * Forgets the keys that have been idle longest, until at most the allowed number is kept. A key
   * stays in the queue while it is claimed, so that claiming and releasing it repeatedly costs
   * nothing. When its turn comes, its state says whether it was claimed.
   */
  forgetIdle(): void {
    while (this.#idleQueue.size > this.#idleMax) {
      const slot = this.#idleQueue.shift()
      const state = this.#idle.get(slot)
      this.#idle.set(slot, ABSENT)
      if (this.count.get(slot) > 0) continue
      if (state === USED) {
        this.#idle.set(slot, QUEUED)
        this.#idleQueue.push(slot)
      } else {
        this.#forget(slot)
      }
    }
  }

  /** Copies the other table into this empty one, for reading only. */
  copy(from: KeyTable): void {
    this.slots.copy(from.slots)
    this.#idleQueue.copy(from.#idleQueue)
  }

  /** The queue of idle keys, oldest first, and whether each was claimed since it was queued. */
  *idle(): Generator<readonly [Key, boolean]> {
    for (const slot of this.#idleQueue.all()) {
      yield [this.name.get(slot)!, this.#idle.get(slot) === USED]
    }
  }

  /** Restores the queue of idle keys. */
  setIdle(keys: Iterable<readonly [Key, boolean]>): void {
    const queued = [...keys].map(([name, isUsed]) => [this.ensure(name), isUsed] as const)
    for (const slot of this.#idleQueue.all()) this.#idle.set(slot, ABSENT)
    this.#idleQueue.clear()
    for (const [slot, isUsed] of queued) {
      this.#idle.set(slot, isUsed ? USED : QUEUED)
      this.#idleQueue.push(slot)
    }
  }

  #forget(slot: number): void {
    const name = this.name.get(slot)!
    this.#byName.delete(slot)
    if (this.#lastName === name) this.#lastSlot = NONE
    this.ordered.delete(slot)
    this.name.set(slot, undefined)
    this.slots.free(slot)
  }
}

/** First in, first out, in a ring that doubles when it is full. */
class Fifo {
  #ring = new Int32Array(64)
  #first = 0
  #size = 0

  get size(): number {
    return this.#size
  }

  push(slot: number): void {
    if (this.#size === this.#ring.length) this.#grow()
    this.#ring[(this.#first + this.#size++) & (this.#ring.length - 1)] = slot
  }

  *all(): Generator<number> {
    for (let at = 0; at < this.#size; at++) {
      yield this.#ring[(this.#first + at) & (this.#ring.length - 1)]!
    }
  }

  copy(from: Fifo): void {
    this.#ring = from.#ring.slice()
    this.#first = from.#first
    this.#size = from.#size
  }

  clear(): void {
    this.#size = 0
  }

  shift(): number {
    const slot = this.#ring[this.#first]!
    this.#first = (this.#first + 1) & (this.#ring.length - 1)
    this.#size--
    return slot
  }

  #grow(): void {
    const ring = new Int32Array(this.#ring.length * 2)
    ring.set(this.#ring.subarray(this.#first))
    ring.set(this.#ring.subarray(0, this.#first), this.#ring.length - this.#first)
    this.#ring = ring
    this.#first = 0
  }
}
