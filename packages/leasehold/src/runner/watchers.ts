import type { EventLog } from '../kernel/index.ts'
import type { Event, Notice, Observer, Watch } from '../port/index.ts'

/** One who watches. After `close` it hears nothing more. */
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
    try {
      this.#observer(notice)
    } catch (error) {
      // The others who watch must hear all the same; but the fault should not vanish either.
      process.emitWarning(error instanceof Error ? error : new Error(String(error)))
    }
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

/** One who watches a prefix: hears the events from the number `from` on, once it has started. */
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

  /** Tells what has been queued; but nothing before the first notice. */
  flush(): void {
    const events = this.#queued
    if (events.length === 0 || !this.#started) return
    this.#queued = []
    super.notify({ type: 'events', revision: events[events.length - 1]!.revision, events })
  }
}

const NOBODY: ReadonlySet<PrefixWatcher> = new Set()

/**
 * Those who watch prefixes. Finding who watches a key costs one look-up for each length of prefix
 * that is watched, however many watch.
 */
export class PrefixWatchers {
  readonly #events: EventLog
  readonly #byPrefix = new Map<string, Set<PrefixWatcher>>()
  readonly #lengths = new Map<number, number>()
  /** The events below this number have been told. */
  #told: number

  constructor(events: EventLog) {
    this.#events = events
    this.#told = events.next
    events.announced(this.#told)
  }

  get size(): number {
    return this.#byPrefix.size
  }

  /** Adds one who is to hear the events from the number `from` on. */
  add(prefix: string, from: number, observer: Observer): PrefixWatcher {
    const watcher = new PrefixWatcher(prefix, from, observer, () => this.#remove(watcher))
    for (let at = from; at < this.#told; at++) {
      if (this.#events.key(at).startsWith(prefix)) watcher.queue(this.#events.event(at))
    }
    const watchers = this.#byPrefix.get(prefix) ?? new Set()
    this.#byPrefix.set(prefix, watchers.add(watcher))
    this.#lengths.set(prefix.length, (this.#lengths.get(prefix.length) ?? 0) + 1)
    return watcher
  }

  /** Tells everyone the events below `number`, if they have not been told more already. */
  tell(number: number): void {
    if (number <= this.#told) return
    const touched = this.size > 0 ? this.#queueUpTo(number) : NOBODY
    this.#told = number
    this.#events.announced(number)
    for (const watcher of touched) watcher.flush()
  }

  all(): Watcher[] {
    return [...this.#byPrefix.values()].flatMap((watchers) => [...watchers])
  }

  /** Queues the events below `number` for those whom they concern. */
  #queueUpTo(number: number): Set<PrefixWatcher> {
    const touched = new Set<PrefixWatcher>()
    for (let at = this.#told; at < number; at++) this.#match(at, touched)
    return touched
  }

  #match(number: number, touched: Set<PrefixWatcher>): void {
    const key = this.#events.key(number)
    let event: Event | undefined
    for (const length of this.#lengths.keys()) {
      if (length > key.length) continue
      for (const watcher of this.#byPrefix.get(key.slice(0, length)) ?? []) {
        if (number < watcher.from) continue
        event ??= this.#events.event(number)
        watcher.queue(event)
        touched.add(watcher)
      }
    }
  }

  #remove(watcher: PrefixWatcher): void {
    const { prefix } = watcher
    const watchers = this.#byPrefix.get(prefix)!
    watchers.delete(watcher)
    if (watchers.size === 0) this.#byPrefix.delete(prefix)
    const left = this.#lengths.get(prefix.length)! - 1
    if (left === 0) this.#lengths.delete(prefix.length)
    else this.#lengths.set(prefix.length, left)
  }
}

/** Those who watch their leases, by the lease's slot. */
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

  /** The lease is gone and its slot will be another's. Answers with those who watched it. */
  take(slot: number): ReadonlySet<Watcher> | undefined {
    const watchers = this.#bySlot.get(slot)
    this.#bySlot.delete(slot)
    return watchers
  }

  all(): Watcher[] {
    return [...this.#bySlot.values()].flatMap((watchers) => [...watchers])
  }
}
