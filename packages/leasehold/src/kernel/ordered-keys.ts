import type { IntegerField, ReferenceField } from './rows.ts'

/** With a million keys it takes a dozen comparisons to find the leaf and nine within it. */
const LEAF = 512

/**
 * Keys in the order of their names, for reading a prefix page by page: an array of sorted arrays of
 * slots. Putting a key in moves at most LEAF others.
 *
 * Keys that nobody claims are in it as well, since most are claimed again soon and moving them out
 * and in would cost more than all the rest of a claim. After many leases have ended at once nearly
 * all can be such, so that stepping over one must cost next to nothing: its name is not looked at.
 */
export class OrderedKeys {
  readonly #names: ReferenceField<string>
  readonly #claims: IntegerField
  readonly #leaves: number[][] = [[]]

  /** The fields of the keys that tell their names, and how many claims each has. */
  constructor(names: ReferenceField<string>, claims: IntegerField) {
    this.#names = names
    this.#claims = claims
  }

  add(slot: number): void {
    const name = this.#names.get(slot)!
    const at = this.#leafOf(name)
    const leaf = this.#leaves[at]!
    leaf.splice(this.#firstNotBelow(leaf, name), 0, slot)
    if (leaf.length > LEAF) this.#leaves.splice(at + 1, 0, leaf.splice(LEAF / 2))
  }

  /** To be called while the key still has its name. */
  delete(slot: number): void {
    const name = this.#names.get(slot)!
    const at = this.#leafOf(name)
    const leaf = this.#leaves[at]!
    leaf.splice(this.#firstNotBelow(leaf, name), 1)
    if (leaf.length === 0 && this.#leaves.length > 1) this.#leaves.splice(at, 1)
  }

  /**
   * The keys that are claimed, have this prefix and come after `after`, in order. Do not change it
   * meanwhile.
   */
  *claimedUnder(prefix: string, after = ''): Generator<number> {
    const start = after > prefix ? after : prefix
    let at = this.#leafOf(start)
    let index = this.#firstNotBelow(this.#leaves[at]!, start)
    for (; at < this.#leaves.length; at++, index = 0) {
      const leaf = this.#leaves[at]!
      for (; index < leaf.length; index++) {
        const slot = leaf[index]!
        const isClaimed = this.#claims.get(slot) > 0
        // The first of a leaf is looked at all the same: the prefix may have ended long ago.
        if (!isClaimed && index > 0) continue
        const name = this.#names.get(slot)!
        if (!name.startsWith(prefix)) return
        if (isClaimed && name > after) yield slot
      }
    }
  }

  /** The last leaf whose first name is not above `name`. */
  #leafOf(name: string): number {
    let low = 0
    let high = this.#leaves.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#names.get(this.#leaves[middle]![0]!)! <= name) low = middle
      else high = middle - 1
    }
    return low
  }

  #firstNotBelow(leaf: readonly number[], name: string): number {
    let low = 0
    let high = leaf.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#names.get(leaf[middle]!)! < name) low = middle + 1
      else high = middle
    }
    return low
  }
}
