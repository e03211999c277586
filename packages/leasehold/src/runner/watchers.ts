import type { EventLog } from '../kernel/index.ts'
import { callObserver, type Event, type Notice, type Observer, type Watch } from '../port/index.ts'

/** One watch. After `close` it gets no notice. */
export class Watcher implements Watch {
  readonly #observer: Observer
  readonly #remove: (watcher: Watcher) => void
  #open = true

  constructor(observer: Observer, remove: (watcher: Watcher) => void) {
    this.#observer = observer
    this.#remove = remove
  }

  notify(notice: Notice): void {
    if (!this.#open) return
    if (isLast(notice)) this.close()
    callObserver(this.#observer, notice)
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    this.#remove(this)
  }
}

function isLast(notice: Notice): boolean {
  return notice.type === 'gone' || notice.type === 'compacted' || notice.type === 'interrupted'
}

/** One watch of a prefix. It gets the events from the number `from` on, once it has started. */
export class PrefixWatcher extends Watcher {
  readonly prefix: string
  readonly from: number
  #queued: Event[] = []
  #started = false

  constructor(prefix: string, from: number, observer: Observer, remove: (it: Watcher) => void) {
    super(observer, remove)
    this.prefix = prefix
    this.from = from
  }

  queue(event: Event): void {
    this.#queued.push(event)
  }

  override notify(notice: Notice): void {
    super.notify(notice)
    if (notice.type !== 'watching') return
    this.#started = true
    this.flush()
  }

  /** Sends the queued events, but nothing before the first notice. */
  flush(): void {
    const events = this.#queued
    if (events.length === 0 || !this.#started) return
    this.#queued = []
    super.notify({ type: 'events', revision: events[events.length - 1]!.revision, events })
  }
}

const NO_WATCHERS: ReadonlySet<PrefixWatcher> = new Set()

/**
 * The watches of prefixes. Finding the watches of a key costs one lookup for each length of a
 * watched prefix, however many watches there are.
 */
export class PrefixWatchers {
  readonly #events: EventLog
  readonly #byPrefix = new Map<string, Set<PrefixWatcher>>()
  /** The watches of the empty prefix, which match every event. */
  #everything: PrefixWatcher[] = []
  /** How many watches have a prefix of this length, and one that begins with this character. */
  readonly #lengths = new Map<number, number>()
  readonly #initials = new Map<number, number>()
  /** The events below this number were sent. */
  #sent: number

  constructor(events: EventLog) {
    this.#events = events
    this.#sent = events.next
    events.announced(this.#sent)
  }

  get size(): number {
    return this.#byPrefix.size
  }

  /** Adds a watch for the events from the number `from` on. */
  add(prefix: string, from: number, observer: Observer): PrefixWatcher {
    const watcher = new PrefixWatcher(prefix, from, observer, () => this.#remove(watcher))
    for (let at = from; at < this.#sent; at++) {
      if (this.#events.key(at).startsWith(prefix)) watcher.queue(this.#events.event(at))
    }
    const watchers = this.#byPrefix.get(prefix) ?? new Set()
    this.#byPrefix.set(prefix, watchers.add(watcher))
    this.#count(watcher, 1)
    return watcher
  }

  /** Sends the events below `number` to all watches, unless they were sent already. */
  sendUpTo(number: number): void {
    if (number <= this.#sent) return
    const matched = this.size > 0 ? this.#queueUpTo(number) : NO_WATCHERS
    this.#sent = number
    this.#events.announced(number)
    for (const watcher of matched) watcher.flush()
  }

  all(): Watcher[] {
    return [...this.#byPrefix.values()].flatMap((watchers) => [...watchers])
  }

  /** Queues the events below `number` for the watches that match. */
  #queueUpTo(number: number): Set<PrefixWatcher> {
    const matched = new Set<PrefixWatcher>()
    for (let at = this.#sent; at < number; at++) this.#match(at, matched)
    return matched
  }

  #match(number: number, matched: Set<PrefixWatcher>): void {
    let event: Event | undefined
    for (const watcher of this.#everything) event = this.#queue(watcher, number, event, matched)
    const key = this.#events.key(number)
    // A server watches some prefixes for itself; nearly all keys begin with another character.
    if (!this.#initials.has(key.charCodeAt(0))) return
    for (const length of this.#lengths.keys()) {
      if (length > key.length) continue
      for (const watcher of this.#byPrefix.get(key.slice(0, length)) ?? []) {
        event = this.#queue(watcher, number, event, matched)
      }
    }
  }

  /** Queues the event with this number, unless the watch began after it. Returns it if it is known. */
  #queue(
    watcher: PrefixWatcher,
    number: number,
    known: Event | undefined,
    matched: Set<PrefixWatcher>,
  ): Event | undefined {
    if (number < watcher.from) return known
    const event = known ?? this.#events.event(number)
    watcher.queue(event)
    matched.add(watcher)
    return event
  }

  #remove(watcher: PrefixWatcher): void {
    const { prefix } = watcher
    const watchers = this.#byPrefix.get(prefix)!
    watchers.delete(watcher)
    if (watchers.size === 0) this.#byPrefix.delete(prefix)
    this.#count(watcher, -1)
  }

  #count(watcher: PrefixWatcher, change: 1 | -1): void {
    const { prefix } = watcher
    if (prefix !== '') {
      count(this.#lengths, prefix.length, change)
      count(this.#initials, prefix.charCodeAt(0), change)
    } else if (change === 1) this.#everything.push(watcher)
    else this.#everything = this.#everything.filter((other) => other !== watcher)
  }
}

function count(counts: Map<number, number>, of: number, change: number): void {
  const left = (counts.get(of) ?? 0) + change
  if (left === 0) counts.delete(of)
  else counts.set(of, left)
}

/** The watches of leases, by the lease's slot. */
export class LeaseWatchers {
  readonly #bySlot = new Map<number, Set<Watcher>>()

  of(slot: number): ReadonlySet<Watcher> | undefined {
    return this.#bySlot.get(slot)
  }

  add(slot: number, observer: Observer): Watcher {
    const watchers = this.#bySlot.get(slot) ?? new Set()
    const watcher = new Watcher(observer, () => {
      watchers.delete(watcher)
      if (watchers.size === 0 && this.#bySlot.get(slot) === watchers) this.#bySlot.delete(slot)
    })
    this.#bySlot.set(slot, watchers.add(watcher))
    return watcher
  }

  /** The lease has ended and its slot will be reused. Returns its watches. */
  take(slot: number): ReadonlySet<Watcher> | undefined {
    const watchers = this.#bySlot.get(slot)
    this.#bySlot.delete(slot)
    return watchers
  }

  all(): Watcher[] {
    return [...this.#bySlot.values()].flatMap((watchers) => [...watchers])
  }
}
