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

/** Gives out slots, the lately freed ones first, and grows the table when there are none left. */
export class Slots {
  readonly #growing: readonly Growing[]
  readonly #free: number[] = []
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
    const slot = this.#free.pop() ?? this.#end
    this.reach(slot)
    return slot
  }

  give(slot: number): void {
    this.#free.push(slot)
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

  /** Looks anew which slots are free, after rows were put where they had been before. */
  recount(isFree: (slot: number) => boolean): void {
    this.#free.length = 0
    for (let slot = this.#end - 1; slot >= 0; slot--) if (isFree(slot)) this.#free.push(slot)
  }
}
