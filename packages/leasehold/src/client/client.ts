import {
  type ClaimSpec,
  type Clock,
  type Duration,
  type Guarantees,
  invalid,
  type Labels,
  type LeaseId,
  type LeaseStore,
  milliseconds,
  type Random,
  show,
} from '../port/index.ts'
import { type Aim, Attempt, abortedError, Conflict, keysOf, type LeaseSource } from './attempt.ts'
import { storeError } from './call.ts'
import { claimAtOnce } from './claim-at-once.ts'
import { ClientCore } from './core.ts'
import type { ClientEvents, RecipeNews } from './emitter.ts'
import { revokeLease } from './errands.ts'
import { Following, type Listener } from './following.ts'
import type { Hold } from './hold.ts'
import { OwnLease, SharedLease } from './lease-sources.ts'
import { closedError } from './loss.ts'
import type { PatientStore } from './patient-store.ts'
import { type ClientOptions, settingsOf } from './settings.ts'
import type { Acquisition } from './telemetry.ts'
import { type Timing, type TimingOptions, timingOf } from './timing.ts'
import { type Changed, View } from './view.ts'

export interface HoldOptions extends TimingOptions {
  /**
   * How long to wait in line at most; then the wait fails with `timeout` and leaves no claim. 0 does
   * not stand in line at all. For as long as it takes if not given.
   */
  readonly wait?: Duration | undefined
  /** Ends the wait with `aborted`. It has no effect on what is held already. */
  readonly signal?: AbortSignal | undefined
  /**
   * A lease that this ends with. When that lease ends, by expiry too, the store tells at once, but
   * unlike one's own expiry it cannot be foreseen: see `Hold`.
   */
  readonly parent?: LeaseId | undefined
  /** Labels for the lease, for people and queries. */
  readonly labels?: Labels | undefined
}

const NO_OPTIONS: HoldOptions = {}
/** How many combinations of options are remembered: a program uses few. */
const KNOWN_MAX = 8
/** With so many timings, those that are not in use are forgotten. */
const SHARED_MAX = 256

/** Options that share a lease, as they were given. */
interface Known {
  readonly strategy: HoldOptions['strategy']
  readonly ttl: HoldOptions['ttl']
  readonly grace: HoldOptions['grace']
  readonly renewEvery: HoldOptions['renewEvery']
  readonly source: SharedLease
}

/**
 * Holds keys on a store: what every recipe is built on.
 *
 * Claims with the same timing share one lease, and one heartbeat keeps all leases of a client. Those
 * that want something of their own (a limit on holding, a parent, labels, no automatic renewal, an
 * infinite ttl) get a lease of their own.
 */
export class Client {
  /** The store, for what no hold stands for: see `PatientStore`. */
  readonly store: PatientStore
  readonly #core: ClientCore
  readonly #closesStore: boolean
  readonly #shared = new Map<string, SharedLease>()
  #known: Known[] = []
  #closing: Promise<void> | undefined = undefined

  /** `closesStore`: closing the client closes the store too. */
  constructor(store: LeaseStore, options: ClientOptions = {}, closesStore = false) {
    this.#core = new ClientCore(store, settingsOf(options))
    this.store = this.#core.calls
    this.#closesStore = closesStore
  }

  get holder(): string {
    return this.#core.settings.holder
  }

  get guarantees(): Guarantees {
    return this.#core.store.guarantees
  }

  /** Listens; answers with a function that ends it. */
  on<Name extends keyof ClientEvents>(
    name: Name,
    listener: (news: ClientEvents[Name]) => void,
  ): () => void {
    return this.#core.events.on(name, listener)
  }

  /** Time and chance, as recipes must use them too. */
  get clock(): Clock {
    return this.#core.clock
  }

  get random(): Random {
    return this.#core.random
  }

  /**
   * Time as a holder must count it: it goes on while the machine is suspended, as the store's does.
   */
  now(): number {
    return this.#core.agenda.now()
  }

  /** Aborted when the client is closed: whoever waits for something else than the store ends then. */
  get closing(): AbortSignal {
    return this.#core.closing.signal
  }

  /** The promise. Whoever asks for it waits for it, and so keeps the process running. */
  awaited<Result>(promise: Promise<Result>): Promise<Result> {
    this.#core.keepAlive.during(promise)
    return promise
  }

  /** Tells those who listen to `news` of what happened in a recipe. */
  tell(news: RecipeNews): void {
    this.#core.events.emit('news', news)
  }

  /** Shows all claims under a prefix, now and from now on; `changed` is called with their keys. */
  view(prefix: string, changed: Changed = () => {}): View {
    if (this.#core.closed) throw closedError()
    return new View(this.#core, prefix, changed)
  }

  /** Tells what happens under a prefix from now on, event by event, and keeps nothing of it. */
  follow(prefix: string, listener: Listener): Following {
    if (this.#core.closed) throw closedError()
    return new Following(this.#core, prefix, listener)
  }

  /**
   * Claims the keys, waits until all of them are held, and answers with what is held.
   *
   * Fails with `timeout`, `aborted` or `closed`, with `lost` where its lease ended while it waited,
   * with the store's refusal, or with `unknown-outcome` where the store did not answer; in each case
   * what may have been claimed is removed again, in the background if need be.
   */
  hold(claims: readonly ClaimSpec[], options: HoldOptions = NO_OPTIONS): Promise<Hold> {
    return this.#acquire(claims, options, false) as Promise<Hold>
  }

  /** The same without waiting in line: answers with who is before us where it is not free. */
  tryHold(
    claims: readonly ClaimSpec[],
    options: HoldOptions = NO_OPTIONS,
  ): Promise<Hold | Conflict> {
    return this.#acquire(claims, options, true)
  }

  /**
   * Gives back all that is held: signals are aborted and waits fail, with `closed`, at once; then
   * the leases are revoked at the store, for at most `callTimeout`. Closing twice does nothing.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  #acquire(
    claims: readonly ClaimSpec[],
    options: HoldOptions,
    tries: boolean,
  ): Promise<Hold | Conflict> {
    const core = this.#core
    let aim: Aim
    try {
      if (core.closed) throw closedError()
      aim = this.#aimOf(claims, options, tries)
    } catch (error) {
      return Promise.reject(error)
    }
    const { telemetry } = core.settings
    if (telemetry === undefined) return this.#pursue(aim)
    return measured(telemetry.acquiring(aim.claims.map(({ key }) => key)), this.#pursue(aim))
  }

  #pursue(aim: Aim): Promise<Hold | Conflict> {
    const core = this.#core
    const keeper = core.inProcess ? aim.source.ready : undefined
    if (keeper !== undefined) return claimAtOnce(core, aim, keeper)
    return new Promise((resolve, reject) => {
      const attempt = new Attempt(core, aim, resolve, reject).begin()
      aim.source.admit(attempt)
    })
  }

  #aimOf(claims: readonly ClaimSpec[], options: HoldOptions, tries: boolean): Aim {
    const source = this.#sourceFor(options)
    const { signal } = options
    const wait = options.wait === undefined ? Infinity : milliseconds(options.wait, 'wait')
    if (signal !== undefined) {
      checkSignal(signal)
      if (signal.aborted) throw abortedError(keysOf(claims), signal)
    }
    return { source, claims, ifFree: tries || wait === 0, wait: tries ? Infinity : wait, signal }
  }

  #sourceFor(options: HoldOptions): LeaseSource {
    if (typeof options !== 'object' || options === null) {
      throw invalid(`options is ${show(options)}: it must be an object`)
    }
    const { maxHold, parent, labels } = options
    const mayShare = maxHold === undefined && parent === undefined && labels === undefined
    if (mayShare) {
      for (const known of this.#known) if (isSame(known, options)) return known.source
    }
    const timing = timingOf(options, this.#core.settings, this.guarantees)
    if (!mayShare || timing.renewal !== 'automatic' || timing.ttl === Infinity) {
      return new OwnLease(this.#core, timing, parent, labels)
    }
    const { strategy, ttl, grace, renewEvery } = options
    const source = this.#sharedLease(timing)
    if (this.#known.length === KNOWN_MAX) this.#known = []
    this.#known.push({ strategy, ttl, grace, renewEvery, source })
    return source
  }

  #sharedLease(timing: Timing): SharedLease {
    const name = `${timing.ttl}/${timing.grace}/${timing.every}`
    let source = this.#shared.get(name)
    if (source === undefined) {
      if (this.#shared.size >= SHARED_MAX) this.#forgetIdle()
      source = new SharedLease(this.#core, timing)
      this.#shared.set(name, source)
    }
    return source
  }

  /** A program that computes its ttls would otherwise leave one behind for each. */
  #forgetIdle(): void {
    this.#known = []
    for (const [name, source] of this.#shared) if (source.idle) this.#shared.delete(name)
  }

  async #close(): Promise<void> {
    const core = this.#core
    core.closed = true
    for (const following of [...core.followings]) following.close()
    const leases = [...core.keepers].map((keeper) => keeper.lease)
    for (const keeper of [...core.keepers]) {
      keeper.abandon({ reason: 'closed', detail: 'the client was closed' })
    }
    core.timeouts.stop(closedError())
    core.closing.abort(closedError())
    for (const lease of leases) revokeLease(core, lease, 'closed')
    await core.settled()
    core.agenda.stop()
    if (this.#closesStore) await core.store.close()
  }
}

async function measured(
  ended: (acquisition: Acquisition) => void,
  result: Promise<Hold | Conflict>,
): Promise<Hold | Conflict> {
  try {
    const held = await result
    if (held instanceof Conflict) ended({ outcome: 'busy' })
    else ended({ outcome: 'held', lease: held.lease, token: held.claimToken })
    return held
  } catch (error) {
    const { code } = storeError(error)
    ended({ outcome: 'failed', code, error })
    throw error
  }
}

function isSame(known: Known, options: HoldOptions): boolean {
  return (
    known.ttl === options.ttl &&
    known.strategy === options.strategy &&
    known.grace === options.grace &&
    known.renewEvery === options.renewEvery
  )
}

function checkSignal(signal: AbortSignal): void {
  if (typeof signal === 'object' && signal !== null && 'aborted' in signal) return
  throw invalid(`signal is ${show(signal)}: it must be an AbortSignal`)
}
