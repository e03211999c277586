/**
 * A map that keeps at least the last `atLeast` entries, and at most twice as many. When the young
 * generation is full, the old one is dropped as a whole: no entry is ever deleted one by one.
 */
export class TwoGenerationMap<K, V> {
  readonly #atLeast: number
  #young = new Map<K, V>()
  #old = new Map<K, V>()

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

  /** Copies the other map. */
  copy(from: TwoGenerationMap<K, V>): void {
    this.#young = new Map(from.#young)
    // Nothing is ever added to the old generation.
    this.#old = from.#old
  }

  /** Oldest first. Entries that are set during the iteration may or may not be included. */
  *entries(): Generator<[K, V]> {
    for (const half of [this.#old, this.#young]) yield* half
  }
}
