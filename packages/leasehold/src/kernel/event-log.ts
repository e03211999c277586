import type { End, Event, Key, Revision, Time } from '../port/index.ts'
import { leaseId } from './lease-id.ts'
import type { Tables } from './tables.ts'

const PAGE = 1024

/**
 * The latest events, in order, in pages of columns: an event becomes an object only when somebody
 * reads it. Events are numbered from 0 on as they are added.
 *
 * At least `keep` events are kept, and everything that has not been announced yet, however much
 * that is: a slow disk or a very large change cannot make a watch miss anything.
 */
export class EventLog {
  readonly #tables: Tables
  readonly #keep: number
  /** The pages from that with the number `#dropped` on. */
  readonly #pages: EventPage[] = []
  #spare: EventPage | undefined
  #dropped = 0
  #next = 0
  #announced = 0
  #completeAfter: Revision

  constructor(tables: Tables, keep: number, revision: Revision) {
    this.#tables = tables
    this.#keep = keep
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

  /** Forgets everything; from this revision on it will be complete. */
  restart(revision: Revision): void {
    this.#pages.length = 0
    this.#dropped = 0
    this.#next = 0
    this.#announced = 0
    this.#completeAfter = revision
  }

  /** Something happened to a claim, which must still stand in the tables. */
  add(
    type: Event['type'],
    revision: Revision,
    claim: number,
    at: Time,
    end: End | undefined,
  ): void {
    const { claims, leases, keys } = this.#tables
    const page = this.#pageForNext()
    const index = this.#next++ % PAGE
    const lease = claims.lease.get(claim)
    page.type[index] = type
    page.revision[index] = revision
    page.token[index] = claims.token.get(claim)
    page.slot[index] = lease
    page.born[index] = leases.born.get(lease)
    page.exclusive[index] = claims.mode(claim) === 'exclusive' ? 1 : 0
    page.limit[index] = claims.limit(claim)
    page.at[index] = at
    page.key[index] = keys.name.get(claims.key.get(claim))!
    page.holder[index] = leases.holder.get(lease)!
    page.value[index] = claims.value.get(claim)
    page.end[index] = end
  }

  /** The events below this number have been told to everyone who watches. */
  announced(number: number): void {
    this.#announced = number
  }

  /** The number of the first event after `revision`, which must not be before `completeAfter`. */
  after(revision: Revision): number {
    let low = this.#dropped * PAGE
    let high = this.#next
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (this.#page(middle).revision[middle % PAGE]! <= revision) low = middle + 1
      else high = middle
    }
    return low
  }

  key(number: number): Key {
    return this.#page(number).key[number % PAGE]!
  }

  revision(number: number): Revision {
    return this.#page(number).revision[number % PAGE]!
  }

  event(number: number): Event {
    const page = this.#page(number)
    const index = number % PAGE
    return {
      revision: page.revision[index]!,
      type: page.type[index]!,
      key: page.key[index]!,
      token: page.token[index]!,
      lease: leaseId(page.slot[index]!, page.born[index]!),
      holder: page.holder[index]!,
      mode: page.exclusive[index] ? 'exclusive' : 'shared',
      limit: page.limit[index]! || undefined,
      value: page.value[index],
      end: page.end[index],
      at: page.at[index]!,
    }
  }

  #page(number: number): EventPage {
    return this.#pages[Math.floor(number / PAGE) - this.#dropped]!
  }

  #pageForNext(): EventPage {
    if (this.#next % PAGE === 0) {
      this.#drop()
      this.#pages.push(this.#spare ?? new EventPage())
      this.#spare = undefined
    }
    return this.#pages[this.#pages.length - 1]!
  }

  /** Drops the oldest page if enough are left. A page is used again: it is large. */
  #drop(): void {
    const end = (this.#dropped + 1) * PAGE
    if (this.#next - end < this.#keep || end > this.#announced) return
    const page = this.#pages.shift()!
    this.#completeAfter = page.revision[PAGE - 1]!
    this.#dropped++
    this.#spare = page
  }
}

class EventPage {
  readonly type = new Array<Event['type']>(PAGE).fill('claimed')
  readonly revision = new Float64Array(PAGE)
  readonly token = new Float64Array(PAGE)
  readonly born = new Float64Array(PAGE)
  readonly at = new Float64Array(PAGE)
  readonly slot = new Int32Array(PAGE)
  readonly limit = new Int32Array(PAGE)
  readonly exclusive = new Uint8Array(PAGE)
  readonly key = new Array<Key>(PAGE).fill('')
  readonly holder = new Array<string>(PAGE).fill('')
  readonly value = new Array<string | undefined>(PAGE).fill(undefined)
  readonly end = new Array<End | undefined>(PAGE).fill(undefined)
}
