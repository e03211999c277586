import {
  formatDuration,
  invalid,
  type Key,
  LeaseholdError,
  type LeaseId,
  type Revision,
  show,
  type Token,
} from '../port/index.ts'
import { carryOn, carryOut, storeError } from './call.ts'
import type { ClientCore } from './core.ts'
import { ReleaseErrand } from './errands.ts'
import type { Keeper } from './keeper.ts'
import { type Loss, lostError } from './loss.ts'

/**
 * - `held`: it is ours, and nobody else can hold it.
 * - `lapsed`: it could not be renewed in time and must not be used; nobody else can hold it yet, and
 *   it may become `held` again with the same token. Only where a grace was asked for.
 * - `lost`: somebody else may hold it. Final.
 * - `released`: we gave it back. Final.
 */
export type HoldState = 'held' | 'lapsed' | 'lost' | 'released'

/**
 * Something that is held: one key, or several that were claimed together.
 *
 * **Promised.** Everything here looks at the clock when it is asked, so the answer is right on the
 * first statement after an event-loop stall or a suspended machine. While the store's clock runs no
 * faster than ours by more than the client's `drift`, `held` is never true, and `signal` is never
 * unaborted when it is read, at a moment when the store has given the key to somebody else after an
 * expiry. Once lost or released it stays so.
 *
 * **Not promised.** Between a check and the act that follows it there is always a gap, in which the
 * process may be paused: only the protected resource can close it, by refusing a `token` that is
 * lower than one it has seen. So send the token with every write. And a revocation by force takes
 * effect at the store at once: the holder learns of it as fast as the news travel, not before.
 */
export interface Hold extends AsyncDisposable {
  /** The key, or the first of several. */
  readonly key: Key
  readonly keys: readonly Key[]
  readonly lease: LeaseId
  /**
   * The fencing token: give it to the resource with every write. Reading it checks the clock, and
   * throws `lapsed` or `lost` where it must not be used, and `claim-not-found` after a release.
   */
  readonly token: Token
  /** The token that it was granted with, whatever became of it: to show, never to write with. */
  readonly claimToken: Token
  readonly state: HoldState
  /** Whether the state is `held`. */
  readonly held: boolean
  /**
   * Aborted when it is lost, with an error whose code is `lost` and whose `reason` says why; not
   * when it lapses, and never after a release.
   */
  readonly signal: AbortSignal
  /** Throws as reading `token` does. */
  assertHeld(): void
  /** Milliseconds for which it is held without another renewal; 0 where it is not held. */
  remaining(): number
  /**
   * Asks the store for the full ttl now. Rejected with `lost` where it is lost, with
   * `unknown-outcome` where the store does not answer, and refused for a strategy that never renews.
   */
  renew(): Promise<void>
  /** Says that it is in use, which keeps it where its strategy is to be kept by activity. */
  touch(): void
  /**
   * Replaces the text that others can read, on the first key or the one that is named. Several
   * updates are carried out in the order in which they were asked for. Rejected with `lapsed` or
   * `lost` where it is not held, and with `unknown-outcome` where the store does not answer.
   */
  update(value: string | undefined, key?: Key): Promise<void>
  /**
   * Gives it back. Doing so twice, or after it was lost, does nothing. Rejected only where the store
   * did not answer: it is then tried again in the background, and ends with its lease at the latest.
   */
  release(): Promise<void>
}

/** A release that nobody awaits may fail unseen: it is tried again in the background anyway. */
function ignore(): void {}

/** A hold under a lease that a keeper keeps. It has no timer and, until asked for, no signal. */
export class KeptHold implements Hold {
  readonly keys: readonly Key[]
  readonly revision: Revision
  readonly claimToken: Token
  readonly #core: ClientCore
  readonly #keeper: Keeper
  #loss: Loss | undefined = undefined
  #released: Promise<void> | undefined = undefined
  #controller: AbortController | undefined = undefined
  #updates: Promise<void> | undefined = undefined

  constructor(
    core: ClientCore,
    keeper: Keeper,
    keys: readonly Key[],
    token: Token,
    revision: Revision,
  ) {
    this.#core = core
    this.#keeper = keeper
    this.keys = keys
    this.claimToken = token
    this.revision = revision
  }

  get key(): Key {
    return this.keys[0]!
  }

  get lease(): LeaseId {
    return this.#keeper.lease
  }

  get token(): Token {
    this.assertHeld()
    return this.claimToken
  }

  get state(): HoldState {
    if (this.#released !== undefined) return 'released'
    if (this.#loss !== undefined) return 'lost'
    return this.#keeper.look()
  }

  get held(): boolean {
    return this.state === 'held'
  }

  get signal(): AbortSignal {
    const { state } = this
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (state === 'lost') this.#controller.abort(this.#lostError())
    }
    return this.#controller.signal
  }

  assertHeld(): void {
    const { state } = this
    if (state === 'held') return
    if (state === 'lost') throw this.#lostError()
    throw this.#notUsable(state)
  }

  remaining(): number {
    return this.state === 'held' ? this.#keeper.remaining() : 0
  }

  renew(): Promise<void> {
    const { state } = this
    if (state === 'lost') return Promise.reject(this.#lostError())
    if (state === 'released') return Promise.reject(this.#notUsable(state))
    if (this.#keeper.timing.renewal !== 'never') return this.#keeper.renew()
    return Promise.reject(
      invalid(
        `${show(this.key)} has a strategy that is never renewed: choose 'reservation' to renew by hand`,
      ),
    )
  }

  touch(): void {
    this.#keeper.touch()
  }

  update(value: string | undefined, key: Key = this.key): Promise<void> {
    // One after the other, since the store takes whatever comes last.
    const before = this.#updates ?? Promise.resolve()
    const updated = before.then(() => this.#update(value, key))
    this.#updates = updated.catch(ignore)
    return updated
  }

  release(): Promise<void> {
    if (this.#released !== undefined) return this.#released
    if (this.#loss !== undefined || !this.#keeper.alive) return Promise.resolve()
    this.#keeper.holds.delete(this.claimToken)
    this.#tellRelease()
    if (this.#core.inProcess) {
      const { keys, claimToken: token } = this
      this.#released = this.#core.store.release({ lease: this.lease, keys, token }).then(
        () => this.#keeper.emptied(),
        (error) => {
          this.#released?.catch(ignore)
          return this.#releaseBy((errand) => carryOn(this.#core, errand, storeError(error)))
        },
      )
    } else {
      this.#released = this.#releaseBy((errand) => carryOut(this.#core, errand))
      this.#released.catch(ignore)
    }
    return this.#released
  }

  /** Leaving a block must not hide the error that ended it: what is unknown is seen to behind. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(ignore)
  }

  /** Called once, by its keeper. */
  lose(loss: Loss): void {
    this.#loss = loss
    this.#controller?.abort(this.#lostError())
  }

  async #update(value: string | undefined, key: Key): Promise<void> {
    this.assertHeld()
    const { lease, claimToken: token } = this
    try {
      await this.#core.calls.update({ lease, key, token, value })
    } catch (error) {
      if (this.state === 'lost') this.assertHeld()
      throw error
    }
  }

  #tellRelease(): void {
    const { events } = this.#core
    if (!events.heard('released')) return
    events.emit('released', { lease: this.lease, keys: this.keys, token: this.claimToken })
  }

  #releaseBy(begin: (errand: ReleaseErrand) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (error?: LeaseholdError) => (error === undefined ? resolve() : reject(error))
      begin(new ReleaseErrand(this.#core, this.#keeper, this.keys, this.claimToken, done))
    })
  }

  #lostError(): LeaseholdError {
    return lostError(this.keys, this.claimToken, this.#loss!)
  }

  #notUsable(state: HoldState): LeaseholdError {
    const what = `${show(this.key)} (token ${this.claimToken})`
    if (state === 'released') {
      return new LeaseholdError('claim-not-found', `${what} was released: claim it again to use it`)
    }
    const { ttl, grace } = this.#keeper.timing
    return new LeaseholdError(
      'lapsed',
      `${what} could not be renewed within its ttl of ${formatDuration(ttl)}: wait until it recovers, or is lost when its grace of ${formatDuration(grace)} is over`,
    )
  }
}
