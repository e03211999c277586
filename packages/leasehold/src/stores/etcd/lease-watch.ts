import {
  type End,
  type Key,
  LeaseholdError,
  type LeaseId,
  type Notice,
  type Observer,
  type OwnClaim,
  type Timer,
  type Token,
} from '../../port/index.ts'
import type { Context, Place } from './context.ts'
import { witness } from './history.ts'
import { endOf, type KnownLease } from './known.ts'
import {
  parseClaimName,
  parseLeaseId,
  prefixEnd,
  readEnd,
  readLease,
  type StoredClaim,
} from './layout.ts'
import { nameOf } from './lines.ts'
import type { Lives } from './lives.ts'
import type { WatchEvent } from './messages.ts'
import { remainingLife } from './renewing.ts'
import { placeIn, readStanding, type Standing } from './standing.ts'
import { isFault } from './transport.ts'
import type { WatchStream } from './watch-stream.ts'

/** A claim that was made elsewhere is noticed after so long, even if nobody told of it. */
const LOOK_AGAIN_MS = 10_000

/** A claim of the lease: on each of its keys it stands somewhere. */
interface Waiting {
  readonly places: Map<Key, WaitingPlace>
}

interface WaitingPlace extends Place {
  holds: boolean
  before: readonly string[]
  stop: (() => void) | undefined
}

/**
 * A lease's watch: one watcher on its record, which hears of its end, of a limit to its life and of
 * what is taken from it; and for each place where it waits one on whoever must go first. For an
 * exclusive claim that is the one before it, so that a hand-over wakes nobody else. After each
 * wake-up it reads how things stood in that very revision, its own claim included: a lease that
 * died while it waited holds nothing.
 */
export class LeaseWatch {
  readonly lease: LeaseId
  readonly #context: Context
  readonly #stream: WatchStream
  readonly #lives: Lives
  readonly #observer: Observer
  readonly #claims = new Map<Token, Waiting>()
  #stop: (() => void) | undefined
  #timer: Timer | undefined
  #over = false
  /** One thing after the other: what was heard later is told later. */
  #turn: Promise<unknown> = Promise.resolve()
  /** Its claims as they were last seen, for the note of an expiry. */
  #known: KnownLease | undefined
  /** The etcd lease that measures its life, as far as that was told. */
  #life: number | undefined
  #seen: readonly StoredClaim[] = []
  /** The claims of which it was told at first how they stand. */
  #standing: ReadonlySet<Token> = new Set()
  /** Those of which it was told that they hold: a call that is sent again is no news. */
  readonly #holding = new Set<Token>()

  constructor(
    context: Context,
    stream: WatchStream,
    lives: Lives,
    lease: LeaseId,
    observer: Observer,
  ) {
    this.#context = context
    this.#stream = stream
    this.#lives = lives
    this.lease = lease
    this.#observer = observer
    this.#then(() => this.#begin())
  }

  /** Whether what happens to the lease is being heard. */
  get isCurrent(): boolean {
    return this.#stop !== undefined && !this.#over && this.#stream.isUp
  }

  close(): void {
    this.#over = true
    this.#timer?.cancel()
    this.#stop?.()
    for (const token of [...this.#claims.keys()]) this.#forget(token)
  }

  interrupt(error: LeaseholdError): void {
    this.#last({ type: 'interrupted', error })
  }

  /** A claim was made here, and waits. */
  waits(token: Token, revision: number, places: readonly Place[]): void {
    this.#then(async () => {
      const isKnown = [this.#standing, this.#claims, this.#holding].some((it) => it.has(token))
      if (!isKnown) this.#add(token, revision, places)
    })
  }

  released(token: Token, keys: readonly Key[]): void {
    const waiting = this.#claims.get(token)
    if (waiting === undefined) return
    for (const key of keys) {
      waiting.places.get(key)?.stop?.()
      waiting.places.delete(key)
    }
    if (waiting.places.size === 0) this.#claims.delete(token)
  }

  #then(work: () => Promise<void>): void {
    this.#turn = this.#turn.then(async () => {
      if (this.#over) return
      try {
        await work()
      } catch (error) {
        this.#fail(error)
      }
    })
  }

  #fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error)
    const known = error instanceof LeaseholdError ? error : undefined
    this.interrupt(
      known ?? new LeaseholdError('unknown-outcome', `a watch failed (${message}): watch anew`),
    )
  }

  #tell(notice: Notice): void {
    if (this.#over) return
    if (notice.type === 'holds') this.#holding.add(notice.token)
    this.#observer(notice)
  }

  #last(notice: Notice): void {
    if (this.#over) return
    this.close()
    this.#observer(notice)
  }

  /** Reads how all claims stand, tells it, and watches from that revision on. */
  async #begin(): Promise<void> {
    const standing = await this.#read()
    if (standing === undefined) return
    const { revision, places: claims, known } = standing
    this.#life = known.record.life?.lease
    const own: OwnClaim[] = []
    for (const [token, places] of claims) {
      const holds = places.every((place) => place.holds)
      for (const { key } of places) own.push({ key, token, holds })
    }
    this.#standing = new Set(claims.keys())
    this.#tell({ type: 'standing', revision, claims: own })
    // It may have been closed meanwhile, or by whoever was just told.
    if (this.#over) return
    for (const [token, places] of claims) this.#add(token, revision, places)
    this.#watchRecord(revision)
    this.#lookAgainLater()
  }

  /** How all claims stand; nothing where the lease has ended, which is then told. */
  async #read(): Promise<Standing | undefined> {
    const standing = await readStanding(this.#context, this.lease)
    if (!('known' in standing)) {
      this.#last({ type: 'gone', end: standing.end })
      return undefined
    }
    this.#known = standing.known
    this.#seen = standing.claims
    return standing
  }

  #watchRecord(revision: number): void {
    const { layout } = this.#context
    const { id } = parseLeaseId(this.lease)!
    const key = layout.lease(id)
    this.#stop = this.#stream.watch(
      { key, end: prefixEnd(key), from: revision + 1, deletesOnly: false },
      {
        events: (events) => this.#then(() => this.#hear(id, events)),
        // What was taken from it cannot be told any more: whoever watches anew is told what is left.
        compacted: () => this.#fail(new Error('etcd was compacted while it was not heard')),
        failed: (error) => this.#fail(error),
      },
    )
  }

  async #hear(id: string, events: readonly WatchEvent[]): Promise<void> {
    const { layout, known } = this.#context
    for (const { deleted, kv } of events) {
      if (kv.key === layout.lease(id)) {
        if (deleted) return this.#gone(id, kv.changed)
        this.#known = known.learn(kv)
        const { life, ending } = readLease(kv.value)
        const isNew = life?.lease !== this.#life
        this.#life = life?.lease
        if (isNew && life && !ending) await this.#capped(this.#known)
      } else if (kv.key === layout.life(id)) {
        // Its life is over: whoever hears of it carries it out.
        if (deleted) await this.#lifeOver()
      } else if (kv.key === layout.signal(id) && !deleted) {
        if (kv.value === '') await this.#lookAgain()
        else this.#taken(kv.changed, kv.value)
      }
    }
  }

  async #lifeOver(): Promise<void> {
    const { api } = this.#context
    const life = this.#known?.record.life
    // A life that was cut short is measured by another etcd lease, and the old one's end is nothing.
    if (life === undefined || (await api.timeToLive(life.lease, false))) return
    await this.#lives.end(this.#context, this.lease)
  }

  async #capped(known: KnownLease): Promise<void> {
    const remaining = await remainingLife(this.#context, known)
    if (known.endOfLife === undefined) {
      this.#context.news.limited(known, this.#context.clock.now() + remaining)
    }
    const most = known.record.life!.endOfLife - this.#context.clock.now()
    const told = remaining - most < 1000 && most > 0 ? Math.min(remaining, most) : remaining
    this.#tell({ type: 'capped', remaining: told, end: known.record.life!.end })
  }

  async #gone(id: string, revision: number): Promise<void> {
    const { api, layout } = this.#context
    const { results } = await api.read([layout.get(layout.ended(id))])
    const ended = results[0]!.kvs[0]
    const own = [...(this.#known?.claims.values() ?? [])].flatMap(({ key, token }) => {
      return this.#context.known.claim(key, token) ?? []
    })
    if (ended === undefined) await this.#witness([...this.#seen, ...own], revision)
    this.#last({ type: 'gone', end: endOf(this.lease, ended) })
  }

  /** Those of its claims that stood until the end are noted as expired, before it is told. */
  async #witness(claims: readonly StoredClaim[], revision: number): Promise<void> {
    const { api, layout } = this.#context
    const names = new Map(claims.map((claim) => [layout.claim(claim.key, claim.name), claim]))
    const ranges = [...names.keys()].map((name) => layout.get(name, revision - 1))
    if (ranges.length === 0) return
    try {
      const { results } = await api.read(ranges)
      const stood = results.flatMap(({ kvs }) => kvs.map(({ key }) => names.get(key)!))
      for (const key of new Set(stood.map((claim) => claim.key))) {
        const each = stood.filter((claim) => claim.key === key)
        await witness(this.#context, key, each, revision)
      }
    } catch (error) {
      if (!isFault(error, 'compacted')) throw error
    }
  }

  /** Claims were taken by force: each is told, and those that waited wait no more. */
  #taken(revision: number, text: string): void {
    const [written, taken] = JSON.parse(text) as [Parameters<typeof readEnd>[0], [Key, Token][]]
    const end = readEnd(written) as End
    const { known } = this.#context
    for (const [key, token] of taken) {
      const claim = known.claim(key, token)
      if (claim !== undefined) known.released(claim)
      this.released(token, [key])
      this.#tell({ type: 'removed', revision, key, token, end })
    }
  }

  #add(token: Token, revision: number, places: readonly Place[]): void {
    if (this.#over || places.every(({ holds }) => holds)) return
    const waiting: Waiting = { places: new Map() }
    for (const place of places) waiting.places.set(place.key, { ...place, stop: undefined })
    this.#claims.set(token, waiting)
    for (const place of waiting.places.values()) {
      if (!place.holds) this.#waitFor(token, place, revision)
    }
  }

  /** Watches who must go before this place can hold, from what was seen at a revision. */
  #waitFor(token: Token, place: WaitingPlace, revision: number): void {
    const { layout } = this.#context
    const isShared = parseClaimName(nameOf(place.name)).mode === 'shared'
    const range = isShared ? layout.line(place.key) : { key: place.before.at(-1)!, end: undefined }
    place.stop = this.#stream.watch(
      { ...range, from: revision + 1, deletesOnly: true },
      {
        events: (events) => {
          const gone = new Set(events.map(({ kv }) => kv.key))
          if (!place.before.some((name) => gone.has(name))) return
          const at = events.at(-1)!.kv.changed
          this.#then(() => this.#wake(token, place, at))
        },
        compacted: () => this.#then(() => this.#wake(token, place, undefined)),
        failed: (error) => this.#fail(error),
      },
    )
  }

  /** Somebody before this place has gone: sees how the line was then, and whether it holds now. */
  async #wake(token: Token, place: WaitingPlace, at: number | undefined): Promise<void> {
    const waiting = this.#claims.get(token)
    if (waiting?.places.get(place.key) !== place) return
    const { api, layout } = this.#context
    let answer: Awaited<ReturnType<typeof api.read>>
    try {
      answer = await api.read([layout.lineNames(place.key, token, at)])
    } catch (error) {
      if (!isFault(error, 'compacted') || at === undefined) throw error
      return this.#wake(token, place, undefined)
    }
    if (waiting.places.get(place.key) !== place || this.#over) return
    const revision = at ?? answer.revision
    const found = placeIn(place.key, place.name, answer.results[0]!.kvs)
    // Its own claim has gone too; the record's watcher tells why.
    if (found === undefined) return this.released(token, [place.key])
    if (!found.holds) {
      const isSame = found.before.at(-1) === place.before.at(-1)
      place.before = found.before
      if (isSame && at !== undefined) return
      place.stop?.()
      return this.#waitFor(token, place, revision)
    }
    place.stop?.()
    place.stop = undefined
    place.holds = true
    if (![...waiting.places.values()].every(({ holds }) => holds)) return
    this.#claims.delete(token)
    this.#tell({ type: 'holds', revision, token })
  }

  #forget(token: Token): void {
    for (const { stop } of this.#claims.get(token)?.places.values() ?? []) stop?.()
    this.#claims.delete(token)
  }

  #lookAgainLater(): void {
    const { clock } = this.#context
    this.#timer = clock.timer(clock.now() + LOOK_AGAIN_MS, () => {
      this.#then(() => this.#lookAgain())
      this.#lookAgainLater()
    })
  }

  /** Finds claims that were made elsewhere. One that holds by now may have waited before. */
  async #lookAgain(): Promise<void> {
    const seen = new Set(this.#seen.map(({ token }) => token))
    const standing = await this.#read()
    if (standing === undefined) return
    const { revision, places: claims } = standing
    for (const [token, places] of claims) {
      if (this.#claims.has(token)) continue
      this.#add(token, revision, places)
      const isOurs = this.#context.known.claim(places[0]!.key, token) !== undefined
      const isTold = seen.has(token) || isOurs || this.#claims.has(token)
      if (!isTold) this.#tell({ type: 'holds', revision, token })
    }
  }
}
