/**
 * Columns: the fields of a table whose rows are numbered slots.
 *
 * A million leases as a million objects would cost several hundred bytes each and give the garbage
 * collector a million things to walk. As columns of numbers they cost what the numbers cost, and
 * the collector sees a few dozen arrays. Columns grow by a page at a time, so that growing never
 * copies and never pauses.
 */
const PAGE_BITS = 14
const PAGE = 1 << PAGE_BITS
const MASK = PAGE - 1

interface Column {
  grow(): void
}

/** A column of numbers: times, revisions, tokens. */
export class Numbers implements Column {
  readonly #pages: Float64Array[] = []
  get(slot: number): number {
    return this.#pages[slot >>> PAGE_BITS]![slot & MASK]!
  }
  set(slot: number, value: number): void {
    this.#pages[slot >>> PAGE_BITS]![slot & MASK] = value
  }
  grow(): void {
    this.#pages.push(new Float64Array(PAGE))
  }
}

/** A column of small integers: slots of other rows, counts. */
export class Integers implements Column {
  readonly #pages: Int32Array[] = []
  get(slot: number): number {
    return this.#pages[slot >>> PAGE_BITS]![slot & MASK]!
  }
  set(slot: number, value: number): void {
    this.#pages[slot >>> PAGE_BITS]![slot & MASK] = value
  }
  add(slot: number, change: number): number {
    const page = this.#pages[slot >>> PAGE_BITS]!
    const value = page[slot & MASK]! + change
    page[slot & MASK] = value
    return value
  }
  grow(): void {
    this.#pages.push(new Int32Array(PAGE))
  }
}

/** A column of anything else: names, values. */
export class References<T> implements Column {
  readonly #pages: (T | undefined)[][] = []
  get(slot: number): T | undefined {
    return this.#pages[slot >>> PAGE_BITS]![slot & MASK]
  }
  set(slot: number, value: T | undefined): void {
    this.#pages[slot >>> PAGE_BITS]![slot & MASK] = value
  }
  grow(): void {
    this.#pages.push(new Array<T | undefined>(PAGE).fill(undefined))
  }
}

/** No row: what a column of slots says where there is none. */
export const NONE = -1

/** Gives out slots, the lately freed ones first, and grows the columns when there are none left. */
export class Slots {
  readonly #columns: readonly Column[]
  readonly #free: number[] = []
  #capacity = 0
  #end = 0

  constructor(columns: readonly Column[]) {
    this.#columns = columns
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
      for (const column of this.#columns) column.grow()
      this.#capacity += PAGE
    }
    if (this.#end <= slot) this.#end = slot + 1
  }

  /** Looks anew which slots are free, after rows were put where they had been before. */
  recount(isFree: (slot: number) => boolean): void {
    this.#free.length = 0
    for (let slot = this.#end - 1; slot >= 0; slot--) if (isFree(slot)) this.#free.push(slot)
  }
}
