import {
  type ClaimSpec,
  type Clock,
  type Duration,
  type Guarantees,
  type LeaseStore,
  type Random,
  withTimeout,
} from '../port/index.ts'
import { acquire, type Conflict, type HoldOptions, LeaseSources } from './acquire/index.ts'
import { ClientCore } from './core.ts'
import type { ClientEvents, RecipeEvent } from './events/index.ts'
import type { Hold } from './leases/index.ts'
import { type ClientOptions, settingsOf } from './settings.ts'
import {
  closedError,
  limitOf,
  noAnswer,
  RetryingStore,
  revokeLease,
  type TimeLimit,
} from './store-calls/index.ts'
import { type Changed, type Listener, PrefixWatch, View } from './views/index.ts'

const NO_OPTIONS: HoldOptions = {}

interface ClientParts {
  readonly core: ClientCore
  readonly sources: LeaseSources
  readonly limit: TimeLimit
}

/**
 * Holds keys on a store: every recipe uses this.
 *
 * Claims with the same timing share one lease, and one heartbeat keeps all leases of a client.
 */
export class Client {
  /** The store, for data that belongs to no hold: see `RetryingStore`. */
  readonly store: RetryingStore
  readonly #core: ClientCore
  readonly #sources: LeaseSources
  readonly #limit: TimeLimit
  readonly #closesStore: boolean
  #closing: Promise<void> | undefined = undefined

  /** `closesStore`: closing the client closes the store too. `parts`: those of another client. */
  constructor(
    store: LeaseStore,
    options: ClientOptions = {},
    closesStore = false,
    parts?: ClientParts,
  ) {
    this.#core = parts?.core ?? new ClientCore(store, settingsOf(options))
    this.#sources = parts?.sources ?? new LeaseSources(this.#core)
    this.#limit = parts?.limit ?? this.#core.limit
    this.store = parts === undefined ? this.#core.calls : new RetryingStore(this.#core, this.#limit)
    this.#closesStore = closesStore
  }

  get holder(): string {
    return this.#core.settings.holder
  }

  get guarantees(): Guarantees {
    return this.#core.store.guarantees
  }

  /** Listens to an event. Returns a function that stops listening. */
  on<Name extends keyof ClientEvents>(
    name: Name,
    listener: (event: ClientEvents[Name]) => void,
  ): () => void {
    return this.#core.events.on(name, listener)
  }

  /** Time and randomness, as recipes must use them too. */
  get clock(): Clock {
    return this.#core.clock
  }

  get random(): Random {
    return this.#core.random
  }

  /** Time as a holder counts it: it continues while the machine is suspended, as the store's does. */
  now(): number {
    return this.#core.timers.now()
  }

  /** This client, for calls that have another `timeout`. */
  limitedTo(timeout: Duration | undefined): Client {
    if (timeout === undefined) return this
    const limit = limitOf(timeout, this.#limit)
    return new Client(this.#core.store, {}, false, {
      core: this.#core,
      sources: this.#sources,
      limit,
    })
  }

  /** Aborted when the client is closed, to end waits for something other than the store. */
  get closing(): AbortSignal {
    return this.#core.closing.signal
  }

  /** Returns the promise, and keeps the process running until it is settled. */
  awaited<Result>(promise: Promise<Result> | Result): Promise<Result> {
    const settled = Promise.resolve(promise)
    this.#core.keepAlive.during(settled)
    return settled
  }

  /** The same for what comes from a read: fails with `timeout` if the store does not answer. */
  answered<Result>(what: string, promise: Promise<Result>): Promise<Result> {
    const { clock } = this.#core
    const late = () => noAnswer(what, this.#limit, { isRead: true }, undefined)
    return this.awaited(withTimeout(clock, clock.now() + this.#limit.ms, promise, late))
  }

  /** Emits `recipe-event`, and the same under its old name. */
  emit(event: RecipeEvent): void {
    for (const name of ['recipe-event', 'news'] as const) this.#core.events.emit(name, event)
  }

  /** Shows all claims under a prefix, now and from now on; `changed` is called with their keys. */
  view(prefix: string, changed: Changed = () => {}): View {
    if (this.#core.closed) throw closedError()
    return new View(this.#core, prefix, changed)
  }

  /** Reports what happens under a prefix from now on, event by event, and keeps none of it. */
  watchPrefix(prefix: string, listener: Listener): PrefixWatch {
    if (this.#core.closed) throw closedError()
    return new PrefixWatch(this.#core, prefix, listener)
  }

  /**
   * Claims the keys, waits until all of them are held, and returns the hold.
   *
   * Fails with `timeout`, `aborted` or `closed`, with `lost` if its lease ended while it waited, with
   * the store's refusal, or with `unknown-outcome` if the store did not answer. In each case what may
   * have been claimed is removed again, in the background if necessary.
   */
  hold(claims: readonly ClaimSpec[], options: HoldOptions = NO_OPTIONS): Promise<Hold> {
    return acquire(this.#core, this.#sources, claims, options, false, this.#limit) as Promise<Hold>
  }

  /** The same without waiting: if a key is not free, returns who is ahead of us. */
  tryHold(
    claims: readonly ClaimSpec[],
    options: HoldOptions = NO_OPTIONS,
  ): Promise<Hold | Conflict> {
    return acquire(this.#core, this.#sources, claims, options, true, this.#limit)
  }

  /**
   * Gives up all that is held: signals are aborted and waits fail, with `closed`, at once. Then the
   * leases are revoked at the store, for at most `timeout`. Closing twice does nothing.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const core = this.#core
    core.closed = true
    for (const watch of [...core.prefixWatches]) watch.close()
    const leases = [...core.leases]
    for (const lease of leases) {
      lease.lose({ reason: 'closed', detail: 'the client was closed' })
    }
    core.timeouts.stop(closedError())
    core.closing.abort(closedError())
    for (const lease of leases) revokeLease(core, lease.id, 'closed')
    await core.settled()
    core.timers.stop()
    if (this.#closesStore) await core.store.close()
  }
}
