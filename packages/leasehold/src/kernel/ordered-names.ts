/**
 * Names in order, for reading a prefix page by page. An array of sorted arrays: with a million
 * names it takes a dozen comparisons to find the array and nine within it, and putting a name in
 * moves at most LEAF others.
 */
const LEAF = 512

export class OrderedNames {
  readonly #leaves: string[][] = [[]]

  add(name: string): void {
    const at = this.#leafOf(name)
    const leaf = this.#leaves[at]!
    leaf.splice(firstNotBelow(leaf, name), 0, name)
    if (leaf.length > LEAF) this.#leaves.splice(at + 1, 0, leaf.splice(LEAF / 2))
  }

  delete(name: string): void {
    const at = this.#leafOf(name)
    const leaf = this.#leaves[at]!
    const index = firstNotBelow(leaf, name)
    if (leaf[index] !== name) return
    leaf.splice(index, 1)
    if (leaf.length === 0 && this.#leaves.length > 1) this.#leaves.splice(at, 1)
  }

  /** The names with this prefix that come after `after`, in order. Do not change it meanwhile. */
  *under(prefix: string, after = ''): Generator<string> {
    const start = after > prefix ? after : prefix
    let at = this.#leafOf(start)
    let index = firstNotBelow(this.#leaves[at]!, start)
    for (; at < this.#leaves.length; at++, index = 0) {
      const leaf = this.#leaves[at]!
      for (; index < leaf.length; index++) {
        const name = leaf[index]!
        if (!name.startsWith(prefix)) return
        if (name > after) yield name
      }
    }
  }

  /** The last leaf whose first name is not above `name`. */
  #leafOf(name: string): number {
    let low = 0
    let high = this.#leaves.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#leaves[middle]![0]! <= name) low = middle
      else high = middle - 1
    }
    return low
  }
}

function firstNotBelow(leaf: readonly string[], name: string): number {
  let low = 0
  let high = leaf.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (leaf[middle]! < name) low = middle + 1
    else high = middle
  }
  return low
}
