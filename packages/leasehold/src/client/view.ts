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
} from '../port/index.ts'
import type { ClientCore } from './core.ts'
import { Following } from './following.ts'

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
 * told: where everything had to be read again, what is missing ended unseen.
 */
export type Changed = (keys: ReadonlySet<Key>, ended: readonly Event[]) => void

/** The claims under a prefix at one time. */
export interface Snapshot {
  keys(): IterableIterator<Key>
  places(key: Key): readonly Place[]
}

/** The claims of one key. News of revisions up to the one that it was read at are old. */
interface Line {
  readonly places: readonly Place[]
  readonly revision: Revision
}

const NOBODY: readonly Place[] = []
const NONE_SEEN: readonly Event[] = []
const PAGE = 1000

/**
 * All claims under a prefix, kept up to date by the store's own news: asking it costs no call.
 *
 * **Promised.** It shows, key by key, states that were true one after another, in order, and none is
 * left out of `changed` for good: after an outage it catches up by itself, from where it was or,
 * where the store no longer knows the way from there, by reading everything again. Through an outage
 * it goes on showing what it knew.
 *
 * **Not promised.** It is behind the store by as long as news take, and `age` says when the store was
 * last heard of: what matters must be claimed, not looked up.
 */
export class View implements Snapshot, Disposable {
  /** Fulfilled when it has seen everything once; rejected if it is closed before, or forbidden. */
  readonly ready: Promise<void>
  readonly #core: ClientCore
  readonly #prefix: string
  readonly #changed: Changed
  readonly #following: Following
  #lines = new Map<Key, Line>()

  constructor(core: ClientCore, prefix: string, changed: Changed) {
    this.#core = core
    this.#prefix = prefix
    this.#changed = changed
    this.#following = new Following(core, prefix, {
      begin: () => this.#load(),
      events: (events) => this.#apply(events),
    })
    this.ready = this.#following.ready
  }

  /** The keys that somebody claims, in no order that means anything. */
  keys(): IterableIterator<Key> {
    return this.#lines.keys()
  }

  /** The claims on a key in their order: its holders first, then those who wait. */
  places(key: Key): readonly Place[] {
    return this.#lines.get(key)?.places ?? NOBODY
  }

  holders(key: Key): readonly Place[] {
    const places = this.places(key)
    return places.slice(0, holders(places))
  }

  /** Whether the store's news come in. */
  get live(): boolean {
    return this.#following.live
  }

  /** How many milliseconds ago the store was last heard of; 0 for a live one in this process. */
  age(): number {
    return this.#following.age()
  }

  /**
   * What the store says now, for a decision that must not rest on news that are under way still: what
   * one has just given back oneself may not have come back as news. Costs a reading.
   */
  async latest(): Promise<Snapshot> {
    const { lines } = await this.#readAll()
    return { keys: () => lines.keys(), places: (key) => lines.get(key)?.places ?? NOBODY }
  }

  close(): void {
    this.#following.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** Reads everything, and answers with where the reading began. */
  async #load(): Promise<Revision> {
    const { lines, first } = await this.#readAll()
    if (!this.#following.closed) this.#replace(lines)
    return first
  }

  async #readAll(): Promise<{ lines: Map<Key, Line>; first: Revision }> {
    const lines = new Map<Key, Line>()
    let first: Revision | undefined
    let after: Key | undefined
    for (let more = true; more; ) {
      const page = await this.#core.calls.read({ prefix: this.#prefix, after, limit: PAGE })
      first ??= page.revision
      for (const { key, claims, count } of page.keys) {
        const whole = count > claims.length ? await this.#wholeLine(key, count) : undefined
        lines.set(key, whole ?? { places: claims.map(placeOf), revision: page.revision })
      }
      more = page.more
      after = page.keys.at(-1)?.key
    }
    return { lines, first: first! }
  }

  /** A line that was so long. How much may be asked for at once is the store's to say: that much may. */
  async #wholeLine(key: Key, length: number): Promise<Line> {
    const { claims, count, revision } = await this.#core.calls.read({ key, limit: length })
    if (count > claims.length) return this.#wholeLine(key, count)
    return { places: claims.map(placeOf), revision }
  }

  #apply(events: readonly Event[]): void {
    const changed = new Set<Key>()
    const ended: Event[] = []
    for (const event of events) {
      const line = this.#lines.get(event.key)
      // What was read is newer than the news of how it came about.
      if (line !== undefined && event.revision <= line.revision) continue
      this.#note(line, event)
      changed.add(event.key)
      if (event.type === 'removed') ended.push(event)
    }
    if (changed.size > 0) this.#changed(changed, ended)
  }

  #note(line: Line | undefined, event: Event): void {
    const { key, token, type, value } = event
    const old = line?.places ?? NOBODY
    let places: readonly Place[]
    if (type === 'removed') places = old.filter((place) => place.token !== token)
    else if (type === 'claimed') places = [...old, placeOfEvent(event)]
    else places = old.map((place) => (place.token === token ? { ...place, value } : place))
    if (places.length === 0) this.#lines.delete(key)
    else this.#lines.set(key, { places: dated(places, event.at), revision: line?.revision ?? 0 })
  }

  #replace(lines: Map<Key, Line>): void {
    const changed = new Set<Key>()
    for (const [key, { places }] of lines) {
      if (!sameAs(this.places(key), places)) changed.add(key)
    }
    for (const key of this.#lines.keys()) if (!lines.has(key)) changed.add(key)
    this.#lines = lines
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

/** Notes the time for those who have come to hold by what happened then: they are the last to hold. */
function dated(places: readonly Place[], at: Time): readonly Place[] {
  const held = holders(places)
  if (held === 0 || places[held - 1]!.heldSince !== undefined) return places
  return places.map((place, i) =>
    i < held && place.heldSince === undefined ? { ...place, heldSince: at } : place,
  )
}

function sameAs(a: readonly Place[], b: readonly Place[]): boolean {
  return (
    a.length === b.length &&
    a.every((place, i) => place.token === b[i]!.token && place.value === b[i]!.value)
  )
}
