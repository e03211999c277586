import type { IntegerField, ReferenceField } from './rows.ts'

/** With a million keys, a lookup takes a dozen comparisons for the leaf and nine inside it. */
const LEAF = 512

/**
 * Keys sorted by name, for reading a prefix page by page: an array of sorted arrays of slots. Adding
 * a key moves at most LEAF others.
 *
 * Idle keys are included: most are claimed again soon, and removing and adding them would cost more
 * than the rest of a claim. After many leases have ended at once, nearly all keys can be idle. So
 * skipping one must be cheap: its name is not read.
 */
export class OrderedKeys {
  readonly #names: ReferenceField<string>
  readonly #claims: IntegerField
  readonly #leaves: number[][] = [[]]

  /** The fields of the key table with the names and the numbers of claims. */
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

  /** Call this while the key still has its name. */
  delete(slot: number): void {
    const name = this.#names.get(slot)!
    const at = this.#leafOf(name)
    const leaf = this.#leaves[at]!
    leaf.splice(this.#firstNotBelow(leaf, name), 1)
    if (leaf.length === 0 && this.#leaves.length > 1) this.#leaves.splice(at, 1)
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
      for (; index < leaf.length; index++) {
        const slot = leaf[index]!
        const isClaimed = this.#claims.get(slot) > 0
        // The first key of a leaf is always read: the prefix may have ended long ago.
        if (!isClaimed && index > 0) continue
        const name = this.#names.get(slot)!
        if (!name.startsWith(prefix)) return
        if (isClaimed && name > after) yield slot
      }
    }
  }

  /** The last leaf whose first name is not greater than `name`. */
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
