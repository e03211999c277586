const LEAST = 1024

/**
 * Values by number. Numbers are given in order and nearly always taken back in order, so this is a
 * ring in which the position follows from the number.
 *
 * A `Map` does the same. But if many entries come and go, it leaves old tables behind that point to
 * them, and the garbage collector treats them as alive: that took more time than everything else.
 */
export class CallRing<Entry extends { readonly id: number }> {
  size = 0
  #places: (Entry | undefined)[] = new Array(LEAST)
  #mask = LEAST - 1
  /** All numbers in use are at least this. */
  #first = 1
  #last = 0

  /** A new number with its own position. */
  next(): number {
    const id = ++this.#last
    if (this.size === 0) this.#first = id
    while (this.#places[id & this.#mask] !== undefined) this.#grow()
    return id
  }

  /** Adds a value under the number that `next` returned. */
  add(entry: Entry): void {
    this.#places[entry.id & this.#mask] = entry
    this.size++
  }

  get(id: number): Entry | undefined {
    const entry = this.#places[id & this.#mask]
    return entry?.id === id ? entry : undefined
  }

  remove(id: number): void {
    if (this.get(id) === undefined) return
    this.#places[id & this.#mask] = undefined
    this.size--
  }

  /** The oldest value. */
  oldest(): Entry | undefined {
    if (this.size === 0) return undefined
    while (this.get(this.#first) === undefined) this.#first++
    return this.get(this.#first)
  }

  /** All values, oldest first. */
  all(): Entry[] {
    const entries: Entry[] = []
    for (let id = this.oldest()?.id ?? Infinity; id <= this.#last; id++) {
      const entry = this.get(id)
      if (entry !== undefined) entries.push(entry)
    }
    return entries
  }

  /** Numbers with different positions also have different ones in a ring of twice the size. */
  #grow(): void {
    const entries = this.#places
    this.#mask = entries.length * 2 - 1
    this.#places = new Array(entries.length * 2)
    for (const entry of entries) if (entry) this.#places[entry.id & this.#mask] = entry
  }
}
