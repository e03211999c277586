import {
  type Claim,
  type Event,
  holders,
  type Key,
  type LeaseId,
  type Mode,
  type Revision,
  type Time,
  type Token,
} from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import { PrefixWatch } from './prefix-watch.ts'

/** A claim as a view knows it. */
export interface Place {
  readonly key: Key
  readonly token: Token
  readonly lease: LeaseId
  readonly holder: string
  readonly mode: Mode
  readonly limit?: number | undefined
  readonly value?: string | undefined
  readonly claimedAt: Time
  /** Since when it holds the key, on the store's clock; `undefined` while it waits. */
  readonly heldSince?: Time | undefined
}

/**
 * Called with the keys whose claims have changed, and with how claims ended, as far as the store has
 * reported it. If everything had to be read again, some ends were not reported.
 */
export type Changed = (keys: ReadonlySet<Key>, ended: readonly Event[]) => void

/** The claims under a prefix at one time. */
export interface Snapshot {
  keys(): IterableIterator<Key>
  places(key: Key): readonly Place[]
}

/** The claims of one key. Events up to the revision that it was read at are old. */
interface Queue {
  readonly places: readonly Place[]
  readonly revision: Revision
}

const NOBODY: readonly Place[] = []
const NONE_SEEN: readonly Event[] = []
const PAGE = 1000

/**
 * All claims under a prefix, kept up to date by the store's events: asking it costs no call.
 *
 * **Promised.** For each key it shows states that were true, in order, and `changed` reports every
 * change in the end. After an outage it catches up by itself: from where it was or, if the store no
 * longer knows what followed, by reading everything again. During an outage it shows what it knew.
 *
 * **Not promised.** It is behind the store by as long as events take to arrive, and `age` says when
 * the store last answered. What matters must be claimed, not looked up.
 */
export class View implements Snapshot, Disposable {
  /** Fulfilled when it has seen everything once; rejected if it is closed before, or forbidden. */
  readonly ready: Promise<void>
  readonly #core: ClientCore
  readonly #prefix: string
  readonly #changed: Changed
  readonly #watch: PrefixWatch
  #queues = new Map<Key, Queue>()

  constructor(core: ClientCore, prefix: string, changed: Changed) {
    this.#core = core
    this.#prefix = prefix
    this.#changed = changed
    this.#watch = new PrefixWatch(core, prefix, {
      begin: () => this.#load(),
      events: (events) => this.#apply(events),
    })
    this.ready = this.#watch.ready
  }

  /** The keys that somebody claims, in no particular order. */
  keys(): IterableIterator<Key> {
    return this.#queues.keys()
  }

  /** The claims on a key in their order: its holders first, then the waiters. */
  places(key: Key): readonly Place[] {
    return this.#queues.get(key)?.places ?? NOBODY
  }

  holders(key: Key): readonly Place[] {
    const places = this.places(key)
    return places.slice(0, holders(places))
  }

  /** Whether the store reports events. */
  get live(): boolean {
    return this.#watch.live
  }

  /** How many milliseconds ago the store last answered; 0 for a live one in this process. */
  age(): number {
    return this.#watch.age()
  }

  /**
   * What the store says now, for a decision that must not depend on events which are still under
   * way, such as one's own release a moment ago. Costs a read.
   */
  async latest(): Promise<Snapshot> {
    const { queues } = await this.#readAll()
    return { keys: () => queues.keys(), places: (key) => queues.get(key)?.places ?? NOBODY }
  }

  close(): void {
    this.#watch.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** Reads everything, and returns the revision at which the read began. */
  async #load(): Promise<Revision> {
    const { queues, first } = await this.#readAll()
    if (!this.#watch.closed) this.#replace(queues)
    return first
  }

  async #readAll(): Promise<{ queues: Map<Key, Queue>; first: Revision }> {
    const queues = new Map<Key, Queue>()
    let first: Revision | undefined
    let after: Key | undefined
    for (let more = true; more; ) {
      const page = await this.#core.calls.read({ prefix: this.#prefix, after, limit: PAGE })
      first ??= page.revision
      for (const { key, claims, count } of page.keys) {
        const whole = count > claims.length ? await this.#wholeQueue(key, count) : undefined
        queues.set(key, whole ?? { places: claims.map(placeOf), revision: page.revision })
      }
      more = page.more
      after = page.keys.at(-1)?.key
    }
    return { queues, first: first! }
  }

  /** A queue of this length. The store has said how long it is, so it allows a read of that much. */
  async #wholeQueue(key: Key, length: number): Promise<Queue> {
    const { claims, count, revision } = await this.#core.calls.read({ key, limit: length })
    if (count > claims.length) return this.#wholeQueue(key, count)
    return { places: claims.map(placeOf), revision }
  }

  #apply(events: readonly Event[]): void {
    const changed = new Set<Key>()
    const ended: Event[] = []
    for (const event of events) {
      const queue = this.#queues.get(event.key)
      // The read was newer than this event.
      if (queue !== undefined && event.revision <= queue.revision) continue
      this.#applyOne(queue, event)
      changed.add(event.key)
      if (event.type === 'removed') ended.push(event)
    }
    if (changed.size > 0) this.#changed(changed, ended)
  }

  #applyOne(queue: Queue | undefined, event: Event): void {
    const { key, token, type, value, at } = event
    const old = queue?.places ?? NOBODY
    let places: readonly Place[]
    if (type === 'removed') places = old.filter((place) => place.token !== token)
    else if (type === 'claimed') places = [...old, placeOfEvent(event)]
    else {
      const change = type === 'held' ? { heldSince: at } : { value }
      places = old.map((place) => (place.token === token ? { ...place, ...change } : place))
    }
    if (places.length === 0) this.#queues.delete(key)
    else this.#queues.set(key, { places, revision: queue?.revision ?? 0 })
  }

  #replace(queues: Map<Key, Queue>): void {
    const changed = new Set<Key>()
    for (const [key, { places }] of queues) {
      if (!sameAs(this.places(key), places)) changed.add(key)
    }
    for (const key of this.#queues.keys()) if (!queues.has(key)) changed.add(key)
    this.#queues = queues
    if (changed.size > 0) this.#changed(changed, NONE_SEEN)
  }
}

function placeOf(claim: Claim): Place {
  const { key, token, lease, holder, mode, limit, value, claimedAt, heldSince } = claim
  return { key, token, lease, holder, mode, limit, value, claimedAt, heldSince }
}

function placeOfEvent({ key, token, lease, holder, mode, limit, value, at }: Event): Place {
  return { key, token, lease, holder, mode, limit, value, claimedAt: at }
}

function sameAs(a: readonly Place[], b: readonly Place[]): boolean {
  return (
    a.length === b.length &&
    a.every((place, i) => place.token === b[i]!.token && place.value === b[i]!.value)
  )
}
