import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Clock, LeaseId, LeaseStore, Timer } from 'leasehold/port'
import type { Logger } from 'pino'
import { type MeasuredStore, PROBE_TTL_MS, StoreObserver } from '../operations/index.ts'
import type { StreamStats } from '../stream/surroundings.ts'
import { LeaseRound } from './lease-round.ts'
import {
  type DemonstrationState,
  type FeedMessage,
  SAMPLES_MAX,
  type Sample,
  type Spread,
  type State,
} from './sample.ts'

const EVERY_MS = 1000
/** How often a lease is made to see how late it expires. */
const PROBE_EVERY = 5
/** Heartbeats are told together, so often. */
const BEATS_MS = 200
/** Sampling goes on for so long after the last one has left, for those who only reload the page. */
const LINGER_MS = 5 * 60_000
const LOOP_RESOLUTION_MS = 10
/** A lag stands for so long: until the next is measured, and once more if that one fails. */
const LAG_STANDS_MS = 2 * PROBE_EVERY * EVERY_MS

export interface PulseOptions {
  readonly store: MeasuredStore
  /** The same store, for what is not to be counted: looking at it. */
  readonly unmeasured: LeaseStore
  readonly stats: Readonly<StreamStats>
  readonly clock: Clock
  readonly log: Logger
  readonly demonstration: () => DemonstrationState
}

/** Somebody who looks. */
export interface Viewer {
  /** The leases whose heartbeats they want to be told. */
  follows: ReadonlySet<LeaseId>
  tell(message: FeedMessage): void
}

interface Counts {
  readonly grants: number
  readonly renewals: number
  readonly claims: number
  readonly releases: number
  readonly expiries: number
  readonly revokes: number
  readonly failures: number
}

/**
 * How the server does, second by second, for those who look at it. A server that nobody looks at
 * does no work for it.
 */
export class Pulse {
  readonly #options: PulseOptions
  readonly #round: LeaseRound
  readonly #loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
  readonly #viewers = new Set<Viewer>()
  #observer: StoreObserver | undefined
  #samples: Sample[] = []
  #timer: Timer | undefined
  #linger: Timer | undefined
  #beatsTimer: Timer | undefined
  #beats = new Map<LeaseId, number>()
  #last = { at: 0, counts: NOTHING, commits: [] as readonly number[] }
  #ticks = 0
  /** The last lag that was measured, and when. */
  #lag: { readonly ms: number; readonly at: number } | undefined
  /** When the lease that is timed now was asked for. */
  #probedSince: number | undefined

  constructor(options: PulseOptions) {
    this.#options = options
    this.#round = new LeaseRound(options.unmeasured, options.clock)
  }

  enter(viewer: Viewer): void {
    this.#linger?.cancel()
    this.#viewers.add(viewer)
    if (this.#timer === undefined) this.#start()
    if (this.#viewers.size === 1) this.#round.start()
    viewer.tell({ type: 'past', samples: this.#samples })
  }

  leave(viewer: Viewer): void {
    if (!this.#viewers.delete(viewer) || this.#viewers.size > 0) return
    this.#round.stop()
    // From now on nothing is timed: what was says nothing of the time until somebody comes.
    this.#lag = undefined
    const { clock } = this.#options
    this.#linger = clock.timer(clock.now() + LINGER_MS, () => this.#stop())
  }

  close(): void {
    this.#viewers.clear()
    this.#linger?.cancel()
    this.#round.stop()
    this.#stop()
  }

  #start(): void {
    const { unmeasured, store, clock, log } = this.#options
    this.#observer = new StoreObserver(unmeasured, clock, log)
    this.#observer.start()
    this.#loop.enable()
    store.renewed = (leases) => this.#heard(leases)
    this.#samples = []
    this.#ticks = 0
    this.#lag = undefined
    this.#probedSince = undefined
    this.#last = { at: clock.now(), counts: this.#counts(), commits: [...store.commits.counts] }
    this.#next()
  }

  #stop(): void {
    this.#options.store.renewed = undefined
    this.#timer?.cancel()
    this.#beatsTimer?.cancel()
    this.#timer = undefined
    this.#beatsTimer = undefined
    this.#observer?.close()
    this.#observer = undefined
    this.#loop.disable()
  }

  #next(): void {
    const { clock } = this.#options
    this.#timer = clock.timer(this.#last.at + EVERY_MS, () => {
      this.#tick()
      this.#next()
    })
  }

  #tick(): void {
    if (this.#ticks++ % PROBE_EVERY === 0 && this.#viewers.size > 0) void this.#probe()
    const sample = this.#sample()
    this.#samples.push(sample)
    if (this.#samples.length > SAMPLES_MAX) this.#samples.shift()
    const message: FeedMessage = { type: 'sample', sample, state: this.#state() }
    for (const viewer of this.#viewers) viewer.tell(message)
  }

  #state(): State {
    return {
      leases: this.#round.count,
      lapsed: this.#round.lapsed(),
      trouble: this.#options.store.trouble,
      demonstration: this.#options.demonstration(),
    }
  }

  async #probe(): Promise<void> {
    const observer = this.#observer
    // One that does not come back is not forgotten for another: its age is the lag.
    if (observer === undefined || this.#probedSince !== undefined) return
    const { clock } = this.#options
    this.#probedSince = clock.now()
    const ms = await observer.probeExpiry()
    if (observer !== this.#observer) return
    this.#probedSince = undefined
    if (ms !== undefined && this.#viewers.size > 0) this.#lag = { ms, at: clock.now() }
  }

  /** The last lag, or by how much the lease that is timed now is late already, if that is more. */
  #lagNow(now: number): number | undefined {
    if (this.#viewers.size === 0) return undefined
    const stands = this.#lag !== undefined && now - this.#lag.at <= LAG_STANDS_MS
    const measured = stands ? this.#lag?.ms : undefined
    const ttl = Math.max(PROBE_TTL_MS, this.#options.unmeasured.guarantees.ttl.min)
    const late = this.#probedSince === undefined ? 0 : now - this.#probedSince - ttl
    // A part of a second is the way to the store and the timer of this sample, and no lag.
    return late >= EVERY_MS && late > (measured ?? 0) ? late : measured
  }

  #sample(): Sample {
    const { clock, store, stats } = this.#options
    const { at, counts, commits } = this.#last
    const now = clock.now()
    const current = this.#counts()
    this.#last = { at: now, counts: current, commits: [...store.commits.counts] }
    const seconds = Math.max((now - at) / 1000, 0.001)
    const rates = Object.fromEntries(
      Object.entries(current).map(([name, count]) => [
        name,
        (count - counts[name as keyof Counts]) / seconds,
      ]),
    ) as unknown as Counts
    const loopDelay = Math.max(0, this.#loop.max / 1e6 - LOOP_RESOLUTION_MS)
    this.#loop.reset()
    return {
      at: now,
      ...rates,
      commit: spreadOf(store.commits.bounds, commits, store.commits.counts),
      expiryLag: this.#lagNow(now),
      loopDelay: Number.isFinite(loopDelay) ? loopDelay : 0,
      memory: process.memoryUsage.rss(),
      streams: stats.connections,
    }
  }

  #counts(): Counts {
    const { store } = this.#options
    const { claimed = 0, removed = {} } = this.#observer ?? {}
    let failures = 0
    for (const count of store.failures.values()) failures += count
    return {
      grants: store.calls.grant,
      renewals: store.renewals,
      claims: claimed,
      releases: removed['released'] ?? 0,
      expiries: removed['expired'] ?? 0,
      revokes: (removed['revoked'] ?? 0) + (removed['broken'] ?? 0),
      failures,
    }
  }

  #heard(leases: readonly LeaseId[]): void {
    const { clock } = this.#options
    const now = clock.now()
    for (const { follows } of this.#viewers) {
      if (follows.size === 0) continue
      for (const lease of leases) if (follows.has(lease)) this.#beats.set(lease, now)
    }
    if (this.#beats.size === 0 || this.#beatsTimer !== undefined) return
    this.#beatsTimer = clock.timer(now + BEATS_MS, () => this.#tellBeats())
  }

  #tellBeats(): void {
    this.#beatsTimer = undefined
    const beats = [...this.#beats]
    this.#beats = new Map()
    for (const viewer of this.#viewers) {
      const own = beats.filter(([lease]) => viewer.follows.has(lease))
      if (own.length > 0) viewer.tell({ type: 'beats', beats: own })
    }
  }
}

const NOTHING: Counts = {
  grants: 0,
  renewals: 0,
  claims: 0,
  releases: 0,
  expiries: 0,
  revokes: 0,
  failures: 0,
}

/** What of a histogram in seconds was added, as milliseconds below which a half and 99 % lie. */
export function spreadOf(
  bounds: readonly number[],
  before: readonly number[],
  after: readonly number[],
): Spread | undefined {
  const added = after.map((count, at) => count - (before[at] ?? 0))
  const sum = added.reduce((total, count) => total + count, 0)
  if (sum === 0) return undefined
  const quantile = (part: number) => {
    let rest = part * sum
    for (const [at, count] of added.entries()) {
      if (count > 0 && rest <= count) {
        const low = at === 0 ? 0 : bounds[at - 1]!
        const high = bounds[at] ?? low
        return 1000 * (low + (high - low) * (rest / count))
      }
      rest -= count
    }
    return 1000 * bounds.at(-1)!
  }
  return { median: quantile(0.5), high: quantile(0.99) }
}
