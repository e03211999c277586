/**
 * A map that keeps at least the last `atLeast` entries, and at most twice as many. When the young
 * generation is full, the old one is dropped as a whole: no entry is ever deleted one by one.
 */
export class TwoGenerationMap<K, V> {
  readonly #atLeast: number
  #young = new Map<K, V>()
  #old = new Map<K, V>()
  /** How many entries of the young generation belong to this map: fewer than there are, in a copy. */
  #youngCount = Infinity

  constructor(atLeast: number) {
    this.#atLeast = atLeast
  }

  get(key: K): V | undefined {
    return this.#young.get(key) ?? this.#old.get(key)
  }

  set(key: K, value: V): void {
    this.#young.set(key, value)
    if (this.#young.size >= this.#atLeast) {
      this.#old = this.#young
      this.#young = new Map()
    }
  }

  /**
   * Becomes a copy of the other map, to be read by `entries`. Both share their generations. If no key
   * is set twice, the other map only adds entries behind those of the copy.
   */
  copy(from: TwoGenerationMap<K, V>): void {
    this.#young = from.#young
    this.#youngCount = from.#young.size
    this.#old = from.#old
  }

  /** Oldest first. Entries that are set during the iteration may or may not be included. */
  *entries(): Generator<[K, V]> {
    yield* this.#old
    let left = this.#youngCount
    for (const entry of this.#young) {
      if (left-- === 0) return
      yield entry
    }
  }
}
