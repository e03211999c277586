import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Clock, LeaseId, LeaseStore, Timer } from 'leasehold/port'
import type { Logger } from 'pino'
import type { DemoState } from '#demo'
import { type MeasuredStore, PROBE_TTL_MS, StoreObserver } from '../operations/index.ts'
import type { StreamStats } from '../stream/stream-dependencies.ts'
import {
  type FeedMessage,
  type Quantiles,
  SAMPLES_MAX,
  type Sample,
  type ServerState,
} from './feed-messages.ts'
import { LapseScanner } from './lapse-scanner.ts'
import { LevelCounter } from './level-counter.ts'

const EVERY_MS = 1000
/** Measure the expiry lag every so many samples. */
const PROBE_EVERY = 5
/** Count what the store holds every so many samples, also while nobody looks. */
const COUNT_EVERY = 5
/** The interval in which heartbeats are sent together. */
const HEARTBEATS_MS = 200
const LOOP_RESOLUTION_MS = 10
/** How long a measured lag is valid: until the second next probe, in case one fails. */
const LAG_VALID_MS = 2 * PROBE_EVERY * EVERY_MS

export interface LiveMetricsOptions {
  readonly store: MeasuredStore
  /** The same store without counting, for the server's own reads and probes. */
  readonly unmeasured: LeaseStore
  readonly stats: Readonly<StreamStats>
  readonly clock: Clock
  readonly log: Logger
  readonly demo: () => DemoState
}

/** An open dashboard page. */
export interface Viewer {
  /** The leases whose heartbeats it receives. */
  follows: ReadonlySet<LeaseId>
  send(message: FeedMessage): void
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
 * Samples the server's metrics once a second, so that a new page shows the last minutes, and sends
 * them to open dashboard pages. Leases are scanned and expiry is timed only while somebody looks.
 */
export class LiveMetrics {
  readonly #options: LiveMetricsOptions
  readonly #scanner: LapseScanner
  readonly #counter: LevelCounter
  readonly #loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
  readonly #viewers = new Set<Viewer>()
  #observer: StoreObserver | undefined
  readonly #samples: Sample[] = []
  #timer: Timer | undefined
  #heartbeatsTimer: Timer | undefined
  #heartbeats = new Map<LeaseId, number>()
  #last = { at: 0, counts: NO_COUNTS, commits: [] as readonly number[] }
  #ticks = 0
  /** The last measured lag, and when. */
  #lag: { readonly ms: number; readonly at: number } | undefined
  /** When the running probe started. */
  #probedSince: number | undefined

  constructor(options: LiveMetricsOptions) {
    this.#options = options
    this.#scanner = new LapseScanner(options.unmeasured, options.clock)
    this.#counter = new LevelCounter(options.unmeasured)
  }

  enter(viewer: Viewer): void {
    this.#viewers.add(viewer)
    if (this.#viewers.size === 1) {
      this.#scanner.start()
      this.#loop.enable()
      this.#ticks = 0
      this.#options.store.onRenewed = (leases) => this.#renewed(leases)
    }
    viewer.send({ type: 'history', samples: this.#samples })
  }

  leave(viewer: Viewer): void {
    if (!this.#viewers.delete(viewer) || this.#viewers.size > 0) return
    this.#scanner.stop()
    // Without viewers there are no probes, so the last lag becomes meaningless.
    this.#lag = undefined
    this.#loop.disable()
    this.#options.store.onRenewed = undefined
  }

  close(): void {
    this.#viewers.clear()
    this.#scanner.stop()
    this.#options.store.onRenewed = undefined
    this.#timer?.cancel()
    this.#heartbeatsTimer?.cancel()
    this.#observer?.close()
    this.#observer = undefined
    this.#loop.disable()
  }

  /** Starts sampling. */
  start(): void {
    const { unmeasured, store, clock, log } = this.#options
    this.#observer = new StoreObserver(unmeasured, clock, log)
    this.#observer.start()
    this.#last = { at: clock.now(), counts: this.#counts(), commits: [...store.commits.counts] }
    void this.#counter.step()
    this.#next()
  }

  #next(): void {
    const { clock } = this.#options
    this.#timer = clock.timer(this.#last.at + EVERY_MS, () => {
      this.#tick()
      this.#next()
    })
  }

  #tick(): void {
    const ticks = this.#ticks++
    if (ticks % PROBE_EVERY === 0 && this.#viewers.size > 0) void this.#probe()
    if (ticks % COUNT_EVERY === 0) void this.#counter.step()
    const sample = this.#sample()
    this.#samples.push(sample)
    if (this.#samples.length > SAMPLES_MAX) this.#samples.shift()
    const message: FeedMessage = { type: 'sample', sample, state: this.#state() }
    for (const viewer of this.#viewers) viewer.send(message)
  }

  #state(): ServerState {
    return {
      leases: this.#scanner.count,
      lapsed: this.#scanner.lapsed(),
      storageError: this.#options.store.storageError,
      demo: this.#options.demo(),
    }
  }

  async #probe(): Promise<void> {
    const observer = this.#observer
    // A probe that is still running is not replaced: its age is the lag.
    if (observer === undefined || this.#probedSince !== undefined) return
    const { clock } = this.#options
    this.#probedSince = clock.now()
    const ms = await observer.probeExpiry()
    if (observer !== this.#observer) return
    this.#probedSince = undefined
    if (ms !== undefined && this.#viewers.size > 0) this.#lag = { ms, at: clock.now() }
  }

  /** The last lag, or the lateness of the running probe if that is larger. */
  #lagNow(now: number): number | undefined {
    if (this.#viewers.size === 0) return undefined
    const isValid = this.#lag !== undefined && now - this.#lag.at <= LAG_VALID_MS
    const measured = isValid ? this.#lag?.ms : undefined
    const ttl = Math.max(PROBE_TTL_MS, this.#options.unmeasured.guarantees.ttl.min)
    const late = this.#probedSince === undefined ? 0 : now - this.#probedSince - ttl
    // Less than a second may be the round trip and the sample's timer.
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
      commit: quantilesOf(store.commits.bounds, commits, store.commits.counts),
      expiryLag: this.#lagNow(now),
      loopDelay: Number.isFinite(loopDelay) ? loopDelay : 0,
      memory: process.memoryUsage.rss(),
      streams: stats.connections,
      levels: this.#counter.levels,
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

  #renewed(leases: readonly LeaseId[]): void {
    const { clock } = this.#options
    const now = clock.now()
    for (const { follows } of this.#viewers) {
      if (follows.size === 0) continue
      for (const lease of leases) if (follows.has(lease)) this.#heartbeats.set(lease, now)
    }
    if (this.#heartbeats.size === 0 || this.#heartbeatsTimer !== undefined) return
    this.#heartbeatsTimer = clock.timer(now + HEARTBEATS_MS, () => this.#sendHeartbeats())
  }

  #sendHeartbeats(): void {
    this.#heartbeatsTimer = undefined
    const heartbeats = [...this.#heartbeats]
    this.#heartbeats = new Map()
    for (const viewer of this.#viewers) {
      const own = heartbeats.filter(([lease]) => viewer.follows.has(lease))
      if (own.length > 0) viewer.send({ type: 'heartbeats', heartbeats: own })
    }
  }
}

const NO_COUNTS: Counts = {
  grants: 0,
  renewals: 0,
  claims: 0,
  releases: 0,
  expiries: 0,
  revokes: 0,
  failures: 0,
}

/** The median and the 99 % quantile, in milliseconds, of what a histogram in seconds gained. */
export function quantilesOf(
  bounds: readonly number[],
  before: readonly number[],
  after: readonly number[],
): Quantiles | undefined {
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
