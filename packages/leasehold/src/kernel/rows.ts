/**
 * Tables whose rows are numbered slots and whose fields are numbers.
 *
 * A million leases as a million objects would cost several hundred bytes each and give the garbage
 * collector a million things to walk. As numbers in large arrays they cost what the numbers cost,
 * and the collector sees a few dozen arrays. The numbers of one row lie side by side, because what
 * touches one of them touches most, and memory is fetched by the line. A table grows by a page at
 * a time, so that growing never copies and never pauses. Only its first page begins small and
 * doubles: most stores have a handful of leases, and should cost as little.
 */
const PAGE_BITS = 10
const PAGE = 1 << PAGE_BITS
const MASK = PAGE - 1
const ROWS_AT_FIRST = 32

interface Growing {
  /** Makes room for so many rows: up to a page, or one page more than before. */
  grow(rows: number): void
  /** Takes over the rows of another one of its kind. */
  copy(from: this): void
}

/** The fields of a table that are times, revisions, tokens. */
export class NumberRows implements Growing {
  readonly #pages: Float64Array[] = []
  readonly #width: number
  #fields = 0

  constructor(width: number) {
    this.#width = width
  }

  /** The next of its `width` fields. */
  field(): NumberField {
    return new NumberField(this.#pages, this.#width, this.#fields++)
  }

  copy(from: this): void {
    for (const page of from.#pages) this.#pages.push(page.slice())
  }

  grow(rows: number): void {
    if (rows > PAGE) this.#pages.push(new Float64Array(PAGE * this.#width))
    else {
      const first = new Float64Array(rows * this.#width)
      if (this.#pages[0]) first.set(this.#pages[0])
      this.#pages[0] = first
    }
  }
}

/** One field of all rows. (Not with #private names: reading those costs a tenth of the kernel.) */
export class NumberField {
  private readonly pages: readonly Float64Array[]
  private readonly width: number
  private readonly offset: number

  constructor(pages: readonly Float64Array[], width: number, offset: number) {
    this.pages = pages
    this.width = width
    this.offset = offset
  }

  get(slot: number): number {
    return this.pages[slot >>> PAGE_BITS]![(slot & MASK) * this.width + this.offset]!
  }

  set(slot: number, value: number): void {
    this.pages[slot >>> PAGE_BITS]![(slot & MASK) * this.width + this.offset] = value
  }
}

/**
 * The fields of a table that are small integers: slots of other rows, counts. The same as for
 * numbers, written out again, because one class for two kinds of array would be slow for both.
 */
export class IntegerRows implements Growing {
  readonly #pages: Int32Array[] = []
  readonly #width: number
  #fields = 0

  constructor(width: number) {
    this.#width = width
  }

  /** The next of its `width` fields. */
  field(): IntegerField {
    return new IntegerField(this.#pages, this.#width, this.#fields++)
  }

  copy(from: this): void {
    for (const page of from.#pages) this.#pages.push(page.slice())
  }

  grow(rows: number): void {
    if (rows > PAGE) this.#pages.push(new Int32Array(PAGE * this.#width))
    else {
      const first = new Int32Array(rows * this.#width)
      if (this.#pages[0]) first.set(this.#pages[0])
      this.#pages[0] = first
    }
  }
}

export class IntegerField {
  private readonly pages: readonly Int32Array[]
  private readonly width: number
  private readonly offset: number

  constructor(pages: readonly Int32Array[], width: number, offset: number) {
    this.pages = pages
    this.width = width
    this.offset = offset
  }

  get(slot: number): number {
    return this.pages[slot >>> PAGE_BITS]![(slot & MASK) * this.width + this.offset]!
  }

  set(slot: number, value: number): void {
    this.pages[slot >>> PAGE_BITS]![(slot & MASK) * this.width + this.offset] = value
  }

  add(slot: number, change: number): number {
    const page = this.pages[slot >>> PAGE_BITS]!
    const index = (slot & MASK) * this.width + this.offset
    const value = page[index]! + change
    page[index] = value
    return value
  }
}

/** A field of a table that is anything else: names, values. */
export class ReferenceField<T> implements Growing {
  readonly #pages: (T | undefined)[][] = []

  get(slot: number): T | undefined {
    return this.#pages[slot >>> PAGE_BITS]![slot & MASK]
  }

  set(slot: number, value: T | undefined): void {
    this.#pages[slot >>> PAGE_BITS]![slot & MASK] = value
  }

  copy(from: this): void {
    for (const page of from.#pages) this.#pages.push(page.slice())
  }

  grow(rows: number): void {
    if (rows > PAGE) this.#pages.push(new Array<T | undefined>(PAGE).fill(undefined))
    else {
      this.#pages[0] ??= []
      for (let row = this.#pages[0].length; row < rows; row++) this.#pages[0].push(undefined)
    }
  }
}

/** No row: what a field of slots says where there is none. */
export const NONE = -1

/**
 * Gives out slots, always the lowest that is free, and grows the table when none is. So which slot a
 * new row gets depends only on which rows there are, never on what was there before: replicas that
 * reached the same state by different routes go on alike.
 */
export class Slots {
  readonly #growing: readonly Growing[]
  readonly #free = new FreeSlots()
  #capacity = 0
  #end = 0

  constructor(growing: readonly Growing[]) {
    this.#growing = growing
  }

  /** Every slot in use is below this. */
  get end(): number {
    return this.#end
  }

  take(): number {
    const slot = this.#free.takeLowest() ?? this.#end
    this.reach(slot)
    return slot
  }

  give(slot: number): void {
    this.#free.add(slot)
  }

  /** Makes room for this slot without giving it out. */
  reach(slot: number): void {
    while (this.#capacity <= slot) {
      if (this.#capacity >= PAGE) this.#capacity += PAGE
      else this.#capacity = Math.max(2 * this.#capacity, ROWS_AT_FIRST)
      for (const part of this.#growing) part.grow(this.#capacity)
    }
    if (this.#end <= slot) this.#end = slot + 1
  }

  /** Makes an empty table one that can be read as the other was at this moment. */
  copy(from: Slots): void {
    for (const [at, part] of this.#growing.entries()) part.copy(from.#growing[at]!)
    this.#capacity = from.#capacity
    this.#end = from.#end
  }

  /** Looks anew which slots are free, after rows were put where they had been before. */
  recount(isFree: (slot: number) => boolean): void {
    this.#free.clear()
    for (let slot = 0; slot < this.#end; slot++) if (isFree(slot)) this.#free.add(slot)
  }
}

/** Five levels of 32 are enough for 33 million slots. */
const LEVELS = 5

/**
 * A set of slots from which the lowest is taken in a few steps: one bit a slot, in words of 32, and
 * above them levels in which a bit says that the word below is not empty.
 */
class FreeSlots {
  readonly #levels = Array.from({ length: LEVELS }, () => new Uint32Array(1))

  add(slot: number): void {
    let at = slot
    for (let level = 0; level < LEVELS; level++) {
      const index = at >>> 5
      const words = this.#wordsFor(level, index)
      const before = words[index]!
      words[index] = before | (1 << (at & 31))
      if (before !== 0) return
      at = index
    }
  }

  takeLowest(): number | undefined {
    if (this.#levels[LEVELS - 1]![0] === 0) return undefined
    let lowest = 0
    for (let level = LEVELS - 1; level >= 0; level--) {
      const word = this.#levels[level]![lowest]!
      lowest = lowest * 32 + (31 - Math.clz32(word & -word))
    }
    let at = lowest
    for (let level = 0; level < LEVELS; level++) {
      const index = at >>> 5
      const words = this.#levels[level]!
      words[index] = words[index]! & ~(1 << (at & 31))
      if (words[index] !== 0) break
      at = index
    }
    return lowest
  }

  clear(): void {
    for (const words of this.#levels) words.fill(0)
  }

  #wordsFor(level: number, index: number): Uint32Array {
    const words = this.#levels[level]!
    if (index < words.length) return words
    const grown = new Uint32Array(Math.max(index + 1, 2 * words.length))
    grown.set(words)
    this.#levels[level] = grown
    return grown
  }
}
