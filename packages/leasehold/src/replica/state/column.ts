/** One number for each slot. */
export class Column {
  #numbers = new Float64Array(64)

  get(slot: number): number {
    return this.#numbers[slot] ?? 0
  }

  /** A copy, which later changes do not affect. */
  copy(): Column {
    const copy = new Column()
    copy.#numbers = this.#numbers.slice()
    return copy
  }

  set(slot: number, value: number): void {
    if (slot >= this.#numbers.length) {
      const grown = new Float64Array(Math.max(slot + 1, this.#numbers.length * 2))
      grown.set(this.#numbers)
      this.#numbers = grown
    }
    this.#numbers[slot] = value
  }
}
