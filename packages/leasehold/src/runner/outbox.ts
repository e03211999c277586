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

interface Post {
  readonly watcher: Watcher
  readonly notice: Notice
}

/**
 * What those who watch are to be told. Everything waits here until it is durable, and is then told
 * in order: an announced end is final.
 */
export class Outbox implements NoticeSink {
  readonly #leases = new LeaseWatchers()
  readonly #durable: () => Promise<void> | undefined
  #prefixes: PrefixWatchers | undefined
  #kernel: Kernel | undefined
  #queue: Post[] = []
  /** What waits to be durable before it is told. */
  #underWay: Post[] = []
  #telling = false

  /** `durable` answers with a promise where something is not durable yet. */
  constructor(durable: () => Promise<void> | undefined) {
    this.#durable = durable
  }

  /** The kernel needs the outbox to be made, and the outbox needs the kernel to watch it. */
  attach(kernel: Kernel): void {
    this.#kernel = kernel
    this.#prefixes = new PrefixWatchers(kernel.events)
  }

  watchLease(id: LeaseId, observer: Observer): Watch {
    const kernel = this.#kernel!
    const standing = kernel.ownClaims(id)
    if (!standing) return this.#tellOnce(observer, { type: 'gone', end: kernel.endOf(id) })
    const watcher = this.#leases.add(standing.slot, observer)
    const { revision } = kernel
    this.#post(watcher, { type: 'standing', revision, claims: standing.claims })
    this.changed()
    return watcher
  }

  watchPrefix(prefix: string, from: Revision | undefined, observer: Observer): Watch {
    const { events, revision } = this.#kernel!
    // A revision that is yet to come was given by a store that has since lost its memory.
    if (from !== undefined && (!events.continuesFrom(from) || from > revision)) {
      return this.#tellOnce(observer, { type: 'compacted', oldest: events.completeAfter })
    }
    const number = from === undefined ? events.next : events.after(from)
    const watcher = this.#prefixes!.add(prefix, number, observer)
    this.#post(watcher, { type: 'watching', revision: from ?? revision })
    this.changed()
    return watcher
  }

  /** To be called after each change: sees to it that what there is to tell gets told. */
  changed(): void {
    if (this.#queue.length === 0 && this.#prefixes!.size === 0) {
      this.#prefixes!.tell(this.#kernel!.events.next)
    } else if (!this.#telling) {
      this.#telling = true
      void this.#tell()
    }
  }

  /** Ends every watch. */
  close(error: LeaseholdError): void {
    // Those who wait for their first notice, too; who has heard its last one hears no other.
    const waiting = [...this.#underWay, ...this.#queue].map(({ watcher }) => watcher)
    for (const watcher of [...waiting, ...this.#leases.all(), ...this.#prefixes!.all()]) {
      watcher.notify({ type: 'interrupted', error })
    }
  }

  holds(lease: number, revision: Revision, token: Token): void {
    this.#postAll(this.#leases.of(lease), { type: 'holds', revision, token })
  }

  removed(lease: number, revision: Revision, key: Key, token: Token, end: End): void {
    this.#postAll(this.#leases.of(lease), { type: 'removed', revision, key, token, end })
  }

  capped(lease: number, remaining: number, end: End | undefined): void {
    this.#postAll(this.#leases.of(lease), { type: 'capped', remaining, end })
  }

  gone(lease: number, end: End): void {
    this.#postAll(this.#leases.take(lease), { type: 'gone', end })
  }

  #tellOnce(observer: Observer, notice: Notice): Watch {
    const watcher = new Watcher(observer, () => {})
    this.#post(watcher, notice)
    this.changed()
    return watcher
  }

  #postAll(watchers: ReadonlySet<Watcher> | undefined, notice: Notice): void {
    if (watchers) for (const watcher of watchers) this.#post(watcher, notice)
  }

  #post(watcher: Watcher, notice: Notice): void {
    this.#queue.push({ watcher, notice })
  }

  async #tell(): Promise<void> {
    const { events } = this.#kernel!
    do {
      const number = events.next
      this.#underWay = this.#queue
      this.#queue = []
      await this.#untilDurable()
      for (const { watcher, notice } of this.#underWay) watcher.notify(notice)
      this.#underWay = []
      this.#prefixes!.tell(number)
      this.#telling = this.#queue.length > 0 || events.next > number
    } while (this.#telling)
  }

  /** Writing may fail and be tried again: what happened will be told when it has succeeded. */
  async #untilDurable(): Promise<void> {
    for (;;) {
      try {
        return await this.#durable()
      } catch {
        // The next promise is that of the next attempt.
      }
    }
  }
}
