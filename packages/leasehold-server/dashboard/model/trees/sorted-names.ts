/**
 * Sorted names, for lists of a hundred thousand that change all the time. `list` merges all changes
 * since the last call in one pass, so a change itself is cheap.
 */
export class SortedNames {
  #sorted: string[] = []
  readonly #added = new Set<string>()
  readonly #removed = new Set<string>()

  get size(): number {
    return this.#sorted.length + this.#added.size - this.#removed.size
  }

  /** Adds a name that is not in the list. */
  add(name: string): void {
    if (!this.#removed.delete(name)) this.#added.add(name)
  }

  delete(name: string): void {
    if (!this.#added.delete(name)) this.#removed.add(name)
  }

  list(): readonly string[] {
    if (this.#added.size === 0 && this.#removed.size === 0) return this.#sorted
    const added = [...this.#added].sort()
    const merged: string[] = []
    let next = 0
    for (const name of this.#sorted) {
      while (next < added.length && added[next]! < name) merged.push(added[next++]!)
      if (!this.#removed.has(name)) merged.push(name)
    }
    while (next < added.length) merged.push(added[next++]!)
    this.#sorted = merged
    this.#added.clear()
    this.#removed.clear()
    return merged
  }

  /** The index of a name, or where it would be inserted. */
  indexOf(name: string): number {
    const list = this.list()
    let low = 0
    let high = list.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (list[middle]! < name) low = middle + 1
      else high = middle
    }
    return low
  }
}
