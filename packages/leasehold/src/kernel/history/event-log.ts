import type { End, Event, Key, LeaseId, Revision, Time } from '../../port/index.ts'
import { EXCLUSIVE, leaseId, type Tables } from '../tables/index.ts'

/** A page has at most this many events, and not more than are kept. */
const PAGE_MAX = 1024
const PAGE_MIN = 64
const TYPES = ['claimed', 'updated', 'removed', 'held'] as const
/** The number of each type: its place in `TYPES`. */
const NUMBER_OF = { claimed: 0, updated: 1, removed: 2, held: 3 } as const

/** An event is a row of numbers, */
const [REVISION, TYPE, TOKEN, SLOT, BORN, LIMIT, AT, NUMBERS] = [0, 1, 2, 3, 4, 5, 6, 7] as const
/** and a row of references. */
const [KEY, HOLDER, VALUE, END, REFERENCES] = [0, 1, 2, 3, 4] as const

/**
 * The latest events, in order, in pages of columns: an event becomes an object only when it is
 * read. Events are numbered from 0 as they are added.
 *
 * Keeps at least `keep` events, and all events that are not announced yet, however many: a slow
 * disk or a very large change cannot make a watch miss anything.
 */
export class EventLog {
  readonly #tables: Tables
  readonly #keep: number
  readonly #page: number
  /** The pages, starting with page number `#dropped`. */
  readonly #pages: EventPage[] = []
  #spare: EventPage | undefined
  #dropped = 0
  #next = 0
  /** Before the first announcement, nothing waits for one. */
  #announced = Infinity
  #completeAfter: Revision
  /** Ranges of skipped revisions, both ends excluded: see `skip`. */
  #gaps: { readonly after: Revision; readonly before: Revision }[] = []
  #lastSlot = -1
  #lastBorn: Revision = -1
  #lastLease: LeaseId = ''

  constructor(tables: Tables, keep: number, revision: Revision) {
    this.#tables = tables
    this.#keep = keep
    this.#page = Math.min(Math.max(keep, PAGE_MIN), PAGE_MAX)
    this.#completeAfter = revision
  }

  /** The number that the next event will have. */
  get next(): number {
    return this.#next
  }

  /** Every event after this revision is here. */
  get completeAfter(): Revision {
    return this.#completeAfter
  }

  /** Forgets everything. The log is complete from this revision on. */
  restart(revision: Revision): void {
    this.#pages.length = 0
    this.#dropped = 0
    this.#next = 0
    this.#announced = Infinity
    this.#completeAfter = revision
    this.#gaps = []
  }

  /**
   * The store goes from revision `after` to revision `to` without a change in between. A watch that
   * has seen a revision in between saw a change that this store has lost, and must read again.
   */
  skip(after: Revision, to: Revision): void {
    this.#gaps = this.#gaps.filter(({ before }) => before > this.#completeAfter)
    this.#gaps.push({ after, before: to })
  }

  /** Whether a watch can continue from this revision: all later events are here. */
  continuesFrom(revision: Revision): boolean {
    if (revision < this.#completeAfter) return false
    return !this.#gaps.some(({ after, before }) => after < revision && revision < before)
  }

  /** Records a change of a claim, which must still be in the tables. */
  add(
    type: Event['type'],
    revision: Revision,
    claim: number,
    at: Time,
    end: End | undefined,
  ): void {
    const { claims, leases, keys } = this.#tables
    const page = this.#pageForNext()
    const index = this.#next++ % this.#page
    const lease = claims.lease.get(claim)
    const { numbers, references } = page
    const first = index * NUMBERS
    numbers[first + REVISION] = revision
    numbers[first + TYPE] = NUMBER_OF[type]
    numbers[first + TOKEN] = claims.token.get(claim)
    numbers[first + SLOT] = lease
    numbers[first + BORN] = leases.born.get(lease)
    numbers[first + LIMIT] = claims.modeAndLimit.get(claim)
    numbers[first + AT] = at
    const reference = index * REFERENCES
    references[reference + KEY] = keys.name.get(claims.key.get(claim))
    references[reference + HOLDER] = leases.holder.get(lease)
    references[reference + VALUE] = claims.value.get(claim)
    references[reference + END] = end
  }

  /** All watches have received the events below this number. */
  announced(number: number): void {
    this.#announced = number
  }

  /** The number of the first event after `revision`, which must not be before `completeAfter`. */
  after(revision: Revision): number {
    let low = this.#dropped * this.#page
    let high = this.#next
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (this.#number(middle, REVISION) <= revision) low = middle + 1
      else high = middle
    }
    return low
  }

  key(number: number): Key {
    return this.#reference(number, KEY) as Key
  }

  event(number: number): Event {
    const { numbers, references } = this.#pageOf(number)
    const first = (number % this.#page) * NUMBERS
    const reference = (number % this.#page) * REFERENCES
    const limit = numbers[first + LIMIT]!
    return {
      revision: numbers[first + REVISION]!,
      type: TYPES[numbers[first + TYPE]!]!,
      key: references[reference + KEY] as Key,
      token: numbers[first + TOKEN]!,
      lease: this.#leaseOf(numbers[first + SLOT]!, numbers[first + BORN]!),
      holder: references[reference + HOLDER] as string,
      mode: limit === EXCLUSIVE ? 'exclusive' : 'shared',
      limit: limit > 0 ? limit : undefined,
      value: references[reference + VALUE] as string | undefined,
      end: references[reference + END] as End | undefined,
      at: numbers[first + AT]!,
    }
  }

  /** Events in a row are often of one lease: the last id is remembered. */
  #leaseOf(slot: number, born: Revision): LeaseId {
    if (slot !== this.#lastSlot || born !== this.#lastBorn) {
      this.#lastSlot = slot
      this.#lastBorn = born
      this.#lastLease = leaseId(slot, born)
    }
    return this.#lastLease
  }

  #number(number: number, field: number): number {
    return this.#pageOf(number).numbers[(number % this.#page) * NUMBERS + field]!
  }

  #reference(number: number, field: number): unknown {
    return this.#pageOf(number).references[(number % this.#page) * REFERENCES + field]
  }

  #pageOf(number: number): EventPage {
    return this.#pages[Math.floor(number / this.#page) - this.#dropped]!
  }

  #pageForNext(): EventPage {
    if (this.#next % this.#page === 0) {
      this.#drop()
      this.#pages.push(this.#spare ?? new EventPage(this.#page))
      this.#spare = undefined
    }
    return this.#pages[this.#pages.length - 1]!
  }

  /** Drops the oldest page if enough are left, and reuses it, because a page is large. */
  #drop(): void {
    const end = (this.#dropped + 1) * this.#page
    if (this.#next - end < this.#keep || end > this.#announced) return
    const page = this.#pages.shift()!
    this.#completeAfter = page.numbers[(this.#page - 1) * NUMBERS + REVISION]!
    this.#dropped++
    this.#spare = page
  }
}

class EventPage {
  readonly numbers: Float64Array
  readonly references: (string | End | undefined)[]

  constructor(events: number) {
    this.numbers = new Float64Array(events * NUMBERS)
    this.references = new Array<string | End | undefined>(events * REFERENCES).fill(undefined)
  }
}
