import type { Key } from '../port/index.ts'
import { Integers, NONE, Numbers, References, Slots } from './columns.ts'
import { OrderedNames } from './ordered-names.ts'

/**
 * The keys, a row each: those that are claimed, and of those that are not the most recent, which
 * are kept for the sake of their history and because a key that was used is often used again.
 */
export class KeyTable {
  readonly name = new References<Key>()
  readonly first = new Integers()
  readonly last = new Integers()
  /** The last of the claims that hold, or NONE. */
  readonly lastHeld = new Integers()
  readonly count = new Integers()
  readonly held = new Integers()
  /** The number of its latest tenure, or 0: see `Tenures`. */
  readonly tenure = new Numbers()
  readonly #nextIdle = new Integers()
  readonly #previousIdle = new Integers()

  readonly slots = new Slots([
    this.name,
    this.first,
    this.last,
    this.lastHeld,
    this.count,
    this.held,
    this.tenure,
    this.#nextIdle,
    this.#previousIdle,
  ])
  readonly ordered = new OrderedNames()
  readonly #byName = new SlotsByName()
  readonly #idleMax: number
  #idleFirst = NONE
  #idleLast = NONE
  #idleCount = 0

  constructor(idleMax: number) {
    this.#idleMax = idleMax
  }

  /** The slot of a key that is known, claimed or not, or NONE. */
  find(name: Key): number {
    return this.#byName.get(name) ?? NONE
  }

  /** The slot of a key, made if it is new. A new key is idle until it is claimed. */
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
    this.#byName.set(name, slot)
    this.ordered.add(name)
    this.#rest(slot)
    return slot
  }

  /** A claim was added. */
  grown(slot: number): void {
    if (this.count.add(slot, 1) === 1) this.#wake(slot)
  }

  /** A claim was removed. */
  shrunk(slot: number): void {
    if (this.count.add(slot, -1) === 0) this.#rest(slot)
  }

  /** Forgets the keys that have been idle longest, until no more are kept than may be. */
  tidy(): void {
    while (this.#idleCount > this.#idleMax) {
      const slot = this.#idleFirst
      const name = this.name.get(slot)!
      this.#wake(slot)
      this.#byName.delete(name)
      this.ordered.delete(name)
      this.name.set(slot, undefined)
      this.slots.give(slot)
    }
  }

  #rest(slot: number): void {
    this.#nextIdle.set(slot, NONE)
    this.#previousIdle.set(slot, this.#idleLast)
    if (this.#idleLast === NONE) this.#idleFirst = slot
    else this.#nextIdle.set(this.#idleLast, slot)
    this.#idleLast = slot
    this.#idleCount++
  }

  #wake(slot: number): void {
    const next = this.#nextIdle.get(slot)
    const previous = this.#previousIdle.get(slot)
    if (next === NONE) this.#idleLast = previous
    else this.#previousIdle.set(next, previous)
    if (previous === NONE) this.#idleFirst = next
    else this.#nextIdle.set(previous, next)
    this.#idleCount--
  }
}

const SHARDS = 256

/**
 * A map of many names. One Map would hash itself anew as it doubles, which takes a tenth of a
 * second at a million entries; two hundred small ones do that one at a time.
 */
class SlotsByName {
  readonly #shards = Array.from({ length: SHARDS }, () => new Map<string, number>())

  get(name: string): number | undefined {
    return this.#shard(name).get(name)
  }

  set(name: string, slot: number): void {
    this.#shard(name).set(name, slot)
  }

  delete(name: string): void {
    this.#shard(name).delete(name)
  }

  /** The ends of names differ more than their beginnings do. */
  #shard(name: string): Map<string, number> {
    let hash = name.length
    const start = name.length > 6 ? name.length - 6 : 0
    for (let at = start; at < name.length; at++) hash = (hash * 31 + name.charCodeAt(at)) | 0
    return this.#shards[(hash ^ (hash >>> 8)) & (SHARDS - 1)]!
  }
}
