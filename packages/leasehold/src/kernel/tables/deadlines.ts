/**
 * Orders slots by the time of their next check: a binary heap of times in typed arrays.
 *
 * It is lazy. A renewal only writes a field of the lease; the heap keeps the old deadline. When that
 * time comes, the lease is checked, found alive, and put back with its current deadline. So a
 * heartbeat costs nothing here.
 */
export class Deadlines {
  #times = new Float64Array(64)
  #slots = new Int32Array(64)
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The earliest time, or Infinity. */
  get next(): number {
    return this.#size === 0 ? Infinity : this.#times[0]!
  }

  /** The slot with the earliest time. */
  get nextSlot(): number {
    return this.#slots[0]!
  }

  push(time: number, slot: number): void {
    if (this.#size === this.#times.length) this.#grow()
    const times = this.#times
    const slots = this.#slots
    let at = this.#size++
    while (at > 0) {
      const above = (at - 1) >>> 1
      if (times[above]! <= time) break
      times[at] = times[above]!
      slots[at] = slots[above]!
      at = above
    }
    times[at] = time
    slots[at] = slot
  }

  /** Removes the earliest. */
  pop(): void {
    const times = this.#times
    const slots = this.#slots
    const size = --this.#size
    const time = times[size]!
    const slot = slots[size]!
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= size) break
      // At `size` is the entry that is being put back: comparing with it also ends the loop.
      if (times[below + 1]! < times[below]!) below++
      if (times[below]! >= time) break
      times[at] = times[below]!
      slots[at] = slots[below]!
      at = below
    }
    times[at] = time
    slots[at] = slot
  }

  clear(): void {
    this.#size = 0
  }

  #grow(): void {
    const times = new Float64Array(this.#times.length * 2)
    const slots = new Int32Array(times.length)
    times.set(this.#times)
    slots.set(this.#slots)
    this.#times = times
    this.#slots = slots
  }
}
