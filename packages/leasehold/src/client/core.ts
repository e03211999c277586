import { setMaxListeners } from 'node:events'
import type { Clock, LeaseStore, Random, RequestId } from '../port/index.ts'
import { Agenda } from './agenda.ts'
import { type ClientEvents, Emitter } from './emitter.ts'
import { Heartbeat } from './heartbeat.ts'
import { KeepAlive } from './keep-alive.ts'
import type { Keeper } from './keeper.ts'
import { logTo } from './logging.ts'
import { PatientStore } from './patient-store.ts'
import type { Settings } from './settings.ts'
import { Timeouts } from './timeouts.ts'

/** What the parts of one client have in common. */
export class ClientCore {
  readonly store: LeaseStore
  readonly settings: Settings
  readonly clock: Clock
  readonly random: Random
  readonly agenda: Agenda
  readonly timeouts: Timeouts
  readonly heartbeat: Heartbeat
  readonly keepAlive: KeepAlive
  readonly events = new Emitter<ClientEvents>()
  /** The store, asked again until it answers. */
  readonly calls: PatientStore
  /** The leases that are kept. */
  readonly keepers = new Set<Keeper>()
  /** What recipes look at the store through, to be closed with the client. */
  readonly followings = new Set<{ close(): void }>()
  closed = false
  readonly closing = new AbortController()
  /** Where this client's renewals fall between their steps: not where every other's do. */
  readonly phase: number
  readonly inProcess: boolean
  readonly #requestPrefix: string
  #requests = 0
  /** Grants and revocations on their way: a client that closes waits for them, if it can. */
  #underWay = 0
  #settled: (() => void) | undefined = undefined

  constructor(store: LeaseStore, settings: Settings) {
    this.store = store
    this.settings = settings
    // Everything that waits listens to it; from the eleventh on Node would warn of a leak.
    setMaxListeners(0, this.closing.signal)
    this.inProcess = store.guarantees.inProcess
    this.clock = settings.clock
    this.random = settings.random
    this.agenda = new Agenda(this.clock)
    this.timeouts = new Timeouts(this.agenda)
    this.heartbeat = new Heartbeat(this)
    this.keepAlive = new KeepAlive(this.clock)
    this.calls = new PatientStore(this)
    this.phase = this.random.next()
    this.#requestPrefix = this.random.id()
    const { logger, telemetry } = settings
    if (logger !== undefined) logTo(logger, this.events)
    telemetry?.begin(this.events, () => this.agenda.now())
  }

  /**
   * A new request id, where a call can get lost on the way; none where it cannot, since the store
   * would have to remember it for nothing.
   */
  requestId(): RequestId | undefined {
    if (this.inProcess) return undefined
    return `${this.#requestPrefix}-${++this.#requests}`
  }

  begin(): void {
    this.#underWay++
  }

  end(): void {
    if (--this.#underWay === 0) this.#settled?.()
  }

  /** Fulfilled when no lease is being made or ended any more, or after `callTimeout`. */
  settled(): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const time = this.clock.now() + this.settings.callTimeout
      const timer = this.clock.timer(time, resolve, true)
      this.#settled = () => {
        timer.cancel()
        resolve()
      }
    })
  }
}
