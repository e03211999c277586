import {
  type Clock,
  type Duration,
  type LeaseStore,
  nodeEvents,
  type Random,
  type RequestId,
} from '../port/index.ts'
import { CLIENT_EVENTS, type ClientEvents, Emitter, logTo } from './events/index.ts'
import { Heartbeat, type KeptLease } from './leases/index.ts'
import type { Settings } from './settings.ts'
import { limitOf, RetryingStore, type TimeLimit } from './store-calls/index.ts'
import { KeepAlive, Timeouts, TimerQueue } from './timers/index.ts'

/** What the parts of one client share. */
export class ClientCore {
  readonly store: LeaseStore
  readonly settings: Settings
  readonly clock: Clock
  readonly random: Random
  readonly timers: TimerQueue
  readonly timeouts: Timeouts
  readonly heartbeat: Heartbeat
  readonly keepAlive: KeepAlive
  readonly events = new Emitter<ClientEvents>(CLIENT_EVENTS)
  /** The store, with retries. */
  readonly calls: RetryingStore
  /** The leases that are kept. */
  readonly leases = new Set<KeptLease>()
  /** The watches of recipes, to be closed with the client. */
  readonly prefixWatches = new Set<{ close(): void }>()
  closed = false
  readonly closing = new AbortController()
  /** Shifts the steps of this client's renewals, so that clients do not renew all together. */
  readonly phase: number
  readonly inProcess: boolean
  /**
   * After how long a call without an answer is sent again. A store in this process always answers,
   * so it has no limit.
   */
  readonly callTimeout: number
  /** How long a caller waits, unless it says otherwise. */
  readonly limit: TimeLimit
  readonly #requestPrefix: string
  #requests = 0
  /** Grants and revocations in flight: a client that closes waits for them. */
  #underWay = 0
  #settled: (() => void) | undefined = undefined

  constructor(store: LeaseStore, settings: Settings) {
    this.store = store
    this.settings = settings
    // Every wait listens to it; from the eleventh on Node would warn of a leak.
    nodeEvents?.setMaxListeners(0, this.closing.signal)
    this.inProcess = store.guarantees.inProcess
    this.callTimeout = this.inProcess ? Infinity : settings.callTimeout
    this.limit = this.inProcess ? { ms: Infinity, chosenBy: 'default' } : settings.limit
    this.clock = settings.clock
    this.random = settings.random
    this.timers = new TimerQueue(this.clock)
    this.timeouts = new Timeouts(this.timers)
    this.heartbeat = new Heartbeat(this)
    this.keepAlive = new KeepAlive(this.clock)
    this.calls = new RetryingStore(this, this.limit)
    this.phase = this.random.next()
    this.#requestPrefix = this.random.id()
    const { logger, telemetry } = settings
    if (logger !== undefined) logTo(logger, this.events)
    telemetry?.begin(this.events, () => this.timers.now())
  }

  /**
   * A new request id if a call can get lost on the way; none if it cannot, because the store would
   * have to remember it for nothing.
   */
  requestId(): RequestId | undefined {
    if (this.inProcess) return undefined
    return `${this.#requestPrefix}-${++this.#requests}`
  }

  /** The store, with retries for this long instead of the client's `timeout`. */
  callsLimitedTo(timeout: Duration | undefined): RetryingStore {
    if (timeout === undefined) return this.calls
    return new RetryingStore(this, limitOf(timeout, this.limit))
  }

  begin(): void {
    this.#underWay++
  }

  end(): void {
    if (--this.#underWay === 0) this.#settled?.()
  }

  /** Fulfilled when no grant or revocation is in flight any more, or after the client's `timeout`. */
  settled(): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const time = this.clock.now() + this.settings.limit.ms
      const timer = this.clock.timer(time, resolve, true)
      this.#settled = () => {
        timer.cancel()
        resolve()
      }
    })
  }
}
