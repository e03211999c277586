import { NONE, type ReferenceField } from './rows.ts'

const SHARD_BITS = 8
const PLACES_AT_FIRST = 8
/** A search that takes more steps than this is no chance: somebody chose names that collide. */
const STEPS_MAX = 256

/**
 * Finds slots by name. A hash table in typed arrays takes less memory than a Map, the garbage collector
 * does not walk it, and it reads no name but the one that it looks for.
 *
 * One large table would pause when it grows; 256 small ones grow one at a time. The hash is no secret.
 * So a table whose names collide too often becomes a Map, whose hash is one.
 */
export class SlotsByName {
  readonly #names: ReferenceField<string>
  readonly #shards = new Array<Shard | undefined>(1 << SHARD_BITS).fill(undefined)
  #hashed = ''
  #hash = hashOf('')

  constructor(names: ReferenceField<string>) {
    this.#names = names
  }

  /** The slot of a name, or NONE. */
  find(name: string): number {
    const hash = this.#hashOf(name)
    return this.#shards[hash >>> (32 - SHARD_BITS)]?.find(name, hash) ?? NONE
  }

  /** Adds a slot by its name, which must not be there. */
  add(slot: number): void {
    const hash = this.#hashOf(this.#names.get(slot)!)
    const shard = hash >>> (32 - SHARD_BITS)
    this.#shards[shard] ??= new Shard(this.#names)
    this.#shards[shard].add(slot, hash)
  }

  /** Removes a slot by its name, which must still be there. */
  delete(slot: number): void {
    const hash = this.#hashOf(this.#names.get(slot)!)
    this.#shards[hash >>> (32 - SHARD_BITS)]?.delete(slot, hash)
  }

  /** A new name is looked up before it is added. */
  #hashOf(name: string): number {
    if (name !== this.#hashed) {
      this.#hash = hashOf(name)
      this.#hashed = name
    }
    return this.#hash
  }
}

/**
 * Places in a ring. A name is in the place that its hash names, or behind it, without an empty place in
 * between. A place is two numbers: the hash, and the slot plus one, or 0 if the place is empty.
 */
class Shard {
  readonly #names: ReferenceField<string>
  #places = new Int32Array(2 * PLACES_AT_FIRST)
  #mask = PLACES_AT_FIRST - 1
  #count = 0
  #colliding: Map<string, number> | undefined

  constructor(names: ReferenceField<string>) {
    this.#names = names
  }

  find(name: string, hash: number): number {
    if (this.#colliding) return this.#colliding.get(name) ?? NONE
    const places = this.#places
    for (let at = hash & this.#mask; ; at = (at + 1) & this.#mask) {
      const slot = places[2 * at + 1]! - 1
      if (slot === NONE) return NONE
      if (places[2 * at] === hash && this.#names.get(slot) === name) return slot
    }
  }

  add(slot: number, hash: number): void {
    if (this.#colliding) {
      this.#colliding.set(this.#names.get(slot)!, slot)
      return
    }
    // Half of the places stay empty, so that searches are short.
    if (2 * ++this.#count > this.#mask) this.#grow()
    if (this.#put(slot + 1, hash) > STEPS_MAX) this.#collide()
  }

  delete(slot: number, hash: number): void {
    if (this.#colliding) {
      this.#colliding.delete(this.#names.get(slot)!)
      return
    }
    const places = this.#places
    let empty = hash & this.#mask
    while (places[2 * empty + 1] !== slot + 1) empty = (empty + 1) & this.#mask
    this.#count--
    // Moves back what could not be found over the empty place.
    for (let at = (empty + 1) & this.#mask; places[2 * at + 1] !== 0; at = (at + 1) & this.#mask) {
      const wanted = places[2 * at]! & this.#mask
      if (((at - wanted) & this.#mask) < ((at - empty) & this.#mask)) continue
      places.copyWithin(2 * empty, 2 * at, 2 * at + 2)
      empty = at
    }
    places.fill(0, 2 * empty, 2 * empty + 2)
  }

  /** Returns how many places were full. */
  #put(stored: number, hash: number): number {
    const places = this.#places
    let steps = 0
    let at = hash & this.#mask
    for (; places[2 * at + 1] !== 0; at = (at + 1) & this.#mask) steps++
    places[2 * at] = hash
    places[2 * at + 1] = stored
    return steps
  }

  #grow(): void {
    const old = this.#places
    this.#places = new Int32Array(2 * old.length)
    this.#mask = old.length - 1
    for (let at = 0; at < old.length; at += 2) {
      if (old[at + 1] !== 0) this.#put(old[at + 1]!, old[at]!)
    }
  }

  #collide(): void {
    this.#colliding = new Map()
    for (let at = 1; at < this.#places.length; at += 2) {
      const slot = this.#places[at]! - 1
      if (slot !== NONE) this.#colliding.set(this.#names.get(slot)!, slot)
    }
    this.#places = new Int32Array(0)
  }
}

/** FNV-1a of the code units, then mixed, so that names that differ at their ends differ everywhere. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at++) {
    hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
