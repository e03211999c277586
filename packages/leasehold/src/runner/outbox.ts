import type { Kernel, NoticeSink } from '../kernel/index.ts'
import type {
  End,
  Key,
  LeaseholdError,
  LeaseId,
  Notice,
  Observer,
  Revision,
  Token,
  Watch,
} from '../port/index.ts'
import { LeaseWatchers, PrefixWatchers, Watcher } from './watchers.ts'

interface QueuedNotice {
  readonly watcher: Watcher
  readonly notice: Notice
}

/**
 * The notices for the watches. Each notice waits here until its change is durable. Notices are sent
 * in order: an announced end is final.
 */
export class Outbox implements NoticeSink {
  readonly #leases = new LeaseWatchers()
  readonly #durable: () => Promise<void> | undefined
  #prefixes: PrefixWatchers | undefined
  #kernel: Kernel | undefined
  #queue: QueuedNotice[] = []
  /** Notices that wait for their changes to be durable. */
  #inFlight: QueuedNotice[] = []
  #sending = false

  /** `durable` returns a promise if a change is not durable yet. */
  constructor(durable: () => Promise<void> | undefined) {
    this.#durable = durable
  }

  /** The kernel is created with the outbox, and the outbox needs the kernel for its watches. */
  attach(kernel: Kernel): void {
    this.#kernel = kernel
    this.#prefixes = new PrefixWatchers(kernel.events)
  }

  watchLease(id: LeaseId, observer: Observer): Watch {
    const kernel = this.#kernel!
    const own = kernel.ownClaims(id)
    if (!own) return this.#notifyOnce(observer, { type: 'gone', end: kernel.endOf(id) })
    const watcher = this.#leases.add(own.slot, observer)
    const { revision } = kernel
    this.#enqueue(watcher, { type: 'standing', revision, claims: own.claims })
    this.changed()
    return watcher
  }

  watchPrefix(prefix: string, from: Revision | undefined, observer: Observer): Watch {
    const { events, revision } = this.#kernel!
    // A future revision was returned by a store that has lost its state since.
    if (from !== undefined && (!events.continuesFrom(from) || from > revision)) {
      return this.#notifyOnce(observer, { type: 'compacted', oldest: events.completeAfter })
    }
    const number = from === undefined ? events.next : events.after(from)
    const watcher = this.#prefixes!.add(prefix, number, observer)
    this.#enqueue(watcher, { type: 'watching', revision: from ?? revision })
    this.changed()
    return watcher
  }

  /** Call it after each change: it sends what is pending. */
  changed(): void {
    if (this.#queue.length === 0 && this.#prefixes!.size === 0) {
      this.#prefixes!.sendUpTo(this.#kernel!.events.next)
    } else if (!this.#sending) {
      this.#sending = true
      void this.#send()
    }
  }

  /** Ends every watch. */
  close(error: LeaseholdError): void {
    // Also those that wait for their first notice. A watch that got its last notice gets no other.
    const waiting = [...this.#inFlight, ...this.#queue].map(({ watcher }) => watcher)
    for (const watcher of [...waiting, ...this.#leases.all(), ...this.#prefixes!.all()]) {
      watcher.notify({ type: 'interrupted', error })
    }
  }

  holds(lease: number, revision: Revision, token: Token): void {
    this.#enqueueAll(this.#leases.of(lease), { type: 'holds', revision, token })
  }

  removed(lease: number, revision: Revision, key: Key, token: Token, end: End): void {
    this.#enqueueAll(this.#leases.of(lease), { type: 'removed', revision, key, token, end })
  }

  capped(lease: number, remaining: number, end: End | undefined): void {
    this.#enqueueAll(this.#leases.of(lease), { type: 'capped', remaining, end })
  }

  gone(lease: number, end: End): void {
    this.#enqueueAll(this.#leases.take(lease), { type: 'gone', end })
  }

  #notifyOnce(observer: Observer, notice: Notice): Watch {
    const watcher = new Watcher(observer, () => {})
    this.#enqueue(watcher, notice)
    this.changed()
    return watcher
  }

  #enqueueAll(watchers: ReadonlySet<Watcher> | undefined, notice: Notice): void {
    if (watchers) for (const watcher of watchers) this.#enqueue(watcher, notice)
  }

  #enqueue(watcher: Watcher, notice: Notice): void {
    this.#queue.push({ watcher, notice })
  }

  async #send(): Promise<void> {
    const { events } = this.#kernel!
    do {
      const number = events.next
      this.#inFlight = this.#queue
      this.#queue = []
      await this.#untilDurable()
      for (const { watcher, notice } of this.#inFlight) watcher.notify(notice)
      this.#inFlight = []
      this.#prefixes!.sendUpTo(number)
      this.#sending = this.#queue.length > 0 || events.next > number
    } while (this.#sending)
  }

  /** Writing may fail and be tried again: the notices are sent when it has succeeded. */
  async #untilDurable(): Promise<void> {
    for (;;) {
      try {
        return await this.#durable()
      } catch {
        // The next promise waits for the next attempt.
      }
    }
  }
}
