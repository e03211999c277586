const LEAST = 1024

/**
 * What waits under a number, where numbers are given in order and nearly always taken back in
 * order: a ring of places, in which a number's place follows from it.
 *
 * A `Map` does the same, but where many entries come and go it leaves tables behind that point to
 * them, so that the garbage collector takes them for alive: it took more time than all else did.
 */
export class CallRing<Entry extends { readonly id: number }> {
  size = 0
  #places: (Entry | undefined)[] = new Array(LEAST)
  #mask = LEAST - 1
  /** No number below this is taken. */
  #first = 1
  #last = 0

  /** A number that was not given before, with a place of its own. */
  next(): number {
    const id = ++this.#last
    if (this.size === 0) this.#first = id
    while (this.#places[id & this.#mask] !== undefined) this.#grow()
    return id
  }

  /** Under the number that `next` gave. */
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

  /** The one that was added first of those that are there. */
  oldest(): Entry | undefined {
    if (this.size === 0) return undefined
    while (this.get(this.#first) === undefined) this.#first++
    return this.get(this.#first)
  }

  /** All that are there, in the order in which they were added. */
  all(): Entry[] {
    const entries: Entry[] = []
    for (let id = this.oldest()?.id ?? Infinity; id <= this.#last; id++) {
      const entry = this.get(id)
      if (entry !== undefined) entries.push(entry)
    }
    return entries
  }

  /** Numbers that had different places have different ones among twice as many. */
  #grow(): void {
    const entries = this.#places
    this.#mask = entries.length * 2 - 1
    this.#places = new Array(entries.length * 2)
    for (const entry of entries) if (entry) this.#places[entry.id & this.#mask] = entry
  }
}
