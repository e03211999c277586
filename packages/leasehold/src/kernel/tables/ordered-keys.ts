import type { IntegerField, ReferenceField } from './rows.ts'

/** With a million keys, a lookup takes a dozen comparisons for the leaf and nine inside it. */
const LEAF = 512

/**
 * Keys sorted by name, for reading a prefix page by page: an array of sorted leaves. Adding a key moves
 * at most LEAF others.
 *
 * Idle keys are included: most are claimed again soon, and removing and adding them would cost more
 * than the rest of a claim. After many leases have ended at once, nearly all keys can be idle. So
 * skipping one must be cheap: its name is not read.
 */
export class OrderedKeys {
  readonly #names: ReferenceField<string>
  readonly #claims: IntegerField
  readonly #leaves: Leaf[] = [newLeaf()]
  /** The leaf of the last added key. */
  #latest = 0

  /** The fields of the key table with the names and the numbers of claims. */
  constructor(names: ReferenceField<string>, claims: IntegerField) {
    this.#names = names
    this.#claims = claims
  }

  add(slot: number): void {
    const name = this.#names.get(slot)!
    // Names are often added in order. A leaf is found without reading names all over the memory.
    if (!this.#isInLeaf(this.#latest, name)) this.#latest = this.#leafOf(name)
    let leaf = this.#leaves[this.#latest]!
    let at = this.#firstNotBelow(leaf, name)
    if (leaf.size === LEAF) {
      // Behind all others nothing is moved: the full leaf stays full if names are added in order.
      const isLast = at === LEAF && this.#latest === this.#leaves.length - 1
      const cut = isLast ? LEAF : LEAF / 2
      const next = newLeaf()
      next.slots.set(leaf.slots.subarray(cut))
      next.size = LEAF - cut
      leaf.size = cut
      this.#leaves.splice(this.#latest + 1, 0, next)
      if (at > cut || isLast) {
        this.#latest++
        leaf = next
        at -= cut
      }
    }
    leaf.slots.copyWithin(at + 1, at, leaf.size++)
    leaf.slots[at] = slot
  }

  /** Call this while the key still has its name. */
  delete(slot: number): void {
    const name = this.#names.get(slot)!
    const number = this.#leafOf(name)
    const leaf = this.#leaves[number]!
    const at = this.#firstNotBelow(leaf, name)
    leaf.slots.copyWithin(at, at + 1, leaf.size--)
    if (leaf.size === 0 && this.#leaves.length > 1) this.#leaves.splice(number, 1)
  }

  /**
   * The claimed keys with this prefix that come after `after`, sorted. Do not change the keys while
   * iterating.
   */
  *claimedUnder(prefix: string, after = ''): Generator<number> {
    const start = after > prefix ? after : prefix
    let at = this.#leafOf(start)
    let index = this.#firstNotBelow(this.#leaves[at]!, start)
    for (; at < this.#leaves.length; at++, index = 0) {
      const leaf = this.#leaves[at]!
      for (; index < leaf.size; index++) {
        const slot = leaf.slots[index]!
        const isClaimed = this.#claims.get(slot) > 0
        // The first key of a leaf is always read: the prefix may have ended long ago.
        if (!isClaimed && index > 0) continue
        const name = this.#names.get(slot)!
        if (!name.startsWith(prefix)) return
        if (isClaimed && name > after) yield slot
      }
    }
  }

  #isInLeaf(at: number, name: string): boolean {
    const leaf = this.#leaves[at]
    if (leaf === undefined || leaf.size === 0) return false
    if (at > 0 && this.#firstOf(leaf) > name) return false
    const next = this.#leaves[at + 1]
    return next === undefined || name < this.#firstOf(next)
  }

  #firstOf(leaf: Leaf): string {
    return this.#names.get(leaf.slots[0]!)!
  }

  /** The last leaf whose first name is not greater than `name`. */
  #leafOf(name: string): number {
    let low = 0
    let high = this.#leaves.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#firstOf(this.#leaves[middle]!) <= name) low = middle
      else high = middle - 1
    }
    return low
  }

  #firstNotBelow({ slots, size }: Leaf, name: string): number {
    let low = 0
    let high = size
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#names.get(slots[middle]!)! < name) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** The slots of up to LEAF keys, in the order of their names. */
interface Leaf {
  readonly slots: Int32Array
  size: number
}

function newLeaf(): Leaf {
  return { slots: new Int32Array(LEAF), size: 0 }
}
