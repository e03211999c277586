import type { Token } from '../../port/index.ts'

/** The fewest places. It is a power of two, and so is every other number of places. */
const LEAST = 16
/** With at most this many places it does not shrink: many calls at once come and go together. */
const KEPT = 1024
/** Spreads tokens, which are often consecutive, over all places (Knuth's multiplicative hash). */
const SPREAD = 0x9e3779b1

/**
 * Entries by their token, of which thousands come and go each second.
 *
 * A `Map` does the same. But each time it has no more room for entries that come and go, it makes a
 * new table, and the old table points to the new one. Once one of these tables is in the old
 * generation, the garbage collector keeps all later ones and everything in them until it collects
 * that generation. Here nothing points to a later entry: entries lie in one array, at the first free
 * place from that of their token on.
 */
export class TokenTable<Entry extends { readonly claimToken: Token }> {
  size = 0
  #places: (Entry | undefined)[] = new Array(LEAST).fill(undefined)

  get(token: Token): Entry | undefined {
    return this.#places[this.#find(token)]
  }

  has(token: Token): boolean {
    return this.get(token) !== undefined
  }

  add(entry: Entry): void {
    const at = this.#find(entry.claimToken)
    if (this.#places[at] === undefined) this.size++
    this.#places[at] = entry
    if (this.size * 2 > this.#places.length) this.#resize(this.#places.length * 2)
  }

  /** Whether there was one. */
  delete(token: Token): boolean {
    const at = this.#find(token)
    if (this.#places[at] === undefined) return false
    this.size--
    this.#places[at] = undefined
    this.#moveUp(at)
    const count = this.#places.length
    if (count > KEPT && this.size * 8 < count) this.#resize(count / 2)
    return true
  }

  clear(): void {
    this.size = 0
    this.#places = new Array(LEAST).fill(undefined)
  }

  /** All entries at this moment, by their tokens. */
  values(): Entry[] {
    const entries = this.#places.filter((entry) => entry !== undefined)
    return entries.sort((one, other) => one.claimToken - other.claimToken)
  }

  /** Where the entry of this token is, or the free place where it belongs. */
  #find(token: Token): number {
    const last = this.#places.length - 1
    let at = this.#first(token)
    for (;;) {
      const entry = this.#places[at]
      if (entry === undefined || entry.claimToken === token) return at
      at = (at + 1) & last
    }
  }

  /** The place where to begin to look for a token. */
  #first(token: Token): number {
    return (Math.imul(token, SPREAD) >>> 8) & (this.#places.length - 1)
  }

  /** A place has become free: entries behind it that would now be missed move towards it. */
  #moveUp(free: number): void {
    const last = this.#places.length - 1
    for (let at = (free + 1) & last; ; at = (at + 1) & last) {
      const entry = this.#places[at]
      if (entry === undefined) return
      const distance = (at - this.#first(entry.claimToken)) & last
      if (distance < ((at - free) & last)) continue
      this.#places[free] = entry
      this.#places[at] = undefined
      free = at
    }
  }

  #resize(count: number): void {
    const entries = this.#places
    this.#places = new Array(count).fill(undefined)
    for (const entry of entries) {
      if (entry !== undefined) this.#places[this.#find(entry.claimToken)] = entry
    }
  }
}
