/**
 * Remembers at least the last `atLeast` entries, and at most twice as many. When the younger half
 * is full the older is forgotten as a whole, so that nothing is ever deleted one by one.
 */
export class Recent<K, V> {
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

  /** Becomes what the other is at this moment. */
  copy(from: Recent<K, V>): void {
    this.#young = new Map(from.#young)
    // Nothing is ever added to the older half.
    this.#old = from.#old
  }

  /** The older ones first. Those that are set meanwhile may or may not be among them. */
  *entries(): Generator<[K, V]> {
    for (const half of [this.#old, this.#young]) yield* half
  }
}
