/**
 * Tables whose rows are numbered slots and whose fields are numbers.
 *
 * A million leases as objects would cost several hundred bytes each, and the garbage collector would
 * walk a million objects. Numbers in large arrays cost only their own size, and the collector sees a
 * few dozen arrays. The numbers of one row are adjacent, because most code uses several of them and
 * memory is read in cache lines. A table grows by one page at a time, so growing never copies and
 * never pauses. Only its first page starts small and doubles, because most stores have few leases.
 */
const PAGE_BITS = 10
const PAGE = 1 << PAGE_BITS
const MASK = PAGE - 1
const ROWS_AT_FIRST = 32

interface Growable {
  /** Makes room for this many rows: up to a page, or one page more than before. */
  grow(rows: number): void
  /** Copies the rows of another object of the same class. */
  copy(from: this): void
}

/** The fields of a table that are times, revisions or tokens. */
export class NumberRows implements Growable {
  readonly #pages: Float64Array[] = []
  readonly #width: number
  #fields = 0

  constructor(width: number) {
    this.#width = width
  }

  /** Creates the next of its `width` fields. */
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

/** One field of all rows. (Without #private names: reading those makes the kernel 10 % slower.) */
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
 * The fields of a table that are small integers: slots of other rows, counts. A copy of the class for
 * numbers, because one class for two kinds of array would be slow for both.
 */
export class IntegerRows implements Growable {
  readonly #pages: Int32Array[] = []
  readonly #width: number
  #fields = 0

  constructor(width: number) {
    this.#width = width
  }

  /** Creates the next of its `width` fields. */
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

/**
 * A field of a table with any other values: names, values. A page without values is not made: most
 * stores have no labels, for example.
 */
export class ReferenceField<T> implements Growable {
  readonly #pages: ((T | undefined)[] | undefined)[] = [undefined]
  /** The rows of the first page. The others have PAGE rows. */
  #firstRows = 0

  get(slot: number): T | undefined {
    return this.#pages[slot >>> PAGE_BITS]?.[slot & MASK]
  }

  set(slot: number, value: T | undefined): void {
    const page = this.#pages[slot >>> PAGE_BITS]
    if (page !== undefined) page[slot & MASK] = value
    else if (value !== undefined) this.#newPage(slot >>> PAGE_BITS)[slot & MASK] = value
  }

  copy(from: this): void {
    this.#pages.length = 0
    for (const page of from.#pages) this.#pages.push(page?.slice())
    this.#firstRows = from.#firstRows
  }

  grow(rows: number): void {
    if (rows > PAGE) {
      this.#pages.push(undefined)
      return
    }
    this.#firstRows = rows
    const first = this.#pages[0]
    if (first) while (first.length < rows) first.push(undefined)
  }

  #newPage(number: number): (T | undefined)[] {
    const rows = number === 0 ? this.#firstRows : PAGE
    const page = new Array<T | undefined>(rows).fill(undefined)
    this.#pages[number] = page
    return page
  }
}

/** No row: the value of a slot field that is empty. */
export const NONE = -1

/**
 * Hands out slots, always the lowest free one, and grows the table if none is free. So the slot of a
 * new row depends only on which rows exist, never on earlier ones: replicas that reached the same
 * state in different ways continue alike.
 */
export class Slots {
  readonly #columns: readonly Growable[]
  readonly #free = new FreeSlots()
  #capacity = 0
  #end = 0

  constructor(growing: readonly Growable[]) {
    this.#columns = growing
  }

  /** Every slot in use is below this. */
  get end(): number {
    return this.#end
  }

  take(): number {
    const slot = this.#free.takeLowest() ?? this.#end
    this.growTo(slot)
    return slot
  }

  free(slot: number): void {
    this.#free.add(slot)
  }

  /** Makes room for this slot without taking it. */
  growTo(slot: number): void {
    while (this.#capacity <= slot) {
      if (this.#capacity >= PAGE) this.#capacity += PAGE
      else this.#capacity = Math.max(2 * this.#capacity, ROWS_AT_FIRST)
      for (const part of this.#columns) part.grow(this.#capacity)
    }
    if (this.#end <= slot) this.#end = slot + 1
  }

  /** Copies the other table into this empty one, for reading only. */
  copy(from: Slots): void {
    for (const [at, part] of this.#columns.entries()) part.copy(from.#columns[at]!)
    this.#capacity = from.#capacity
    this.#end = from.#end
  }

  /** Finds the free slots again, after rows were restored to their old slots. */
  recount(isFree: (slot: number) => boolean): void {
    this.#free.clear()
    for (let slot = 0; slot < this.#end; slot++) if (isFree(slot)) this.#free.add(slot)
  }
}

/** Five levels of 32 are enough for 33 million slots. */
const LEVELS = 5

/**
 * A set of slots that finds the lowest one in a few steps: one bit per slot, in words of 32. Above
 * are levels in which a bit means that the word below is not empty.
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
