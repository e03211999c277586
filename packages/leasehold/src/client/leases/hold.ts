import {
  formatDuration,
  invalid,
  type Key,
  LeaseholdError,
  type LeaseId,
  type Revision,
  show,
  type Token,
} from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import { type CallOptions, limitOf, ReleaseCall, timeoutIn } from '../store-calls/index.ts'
import type { KeptLease } from './kept-lease.ts'
import { type Loss, lostError } from './loss.ts'

/**
 * - `held`: it is ours, and nobody else can hold it.
 * - `lapsed`: it could not be renewed in time and must not be used. Nobody else can hold it yet, and
 *   it may become `held` again with the same token. Only if a grace was asked for.
 * - `lost`: somebody else may hold it. Final.
 * - `released`: its holder released it. Final.
 */
export type HoldState = 'held' | 'lapsed' | 'lost' | 'released'

/**
 * Something that is held: one key, or several that were claimed together.
 *
 * **Promised.** Everything here checks the clock when it is asked, so the answer is right on the
 * first statement after an event-loop stall or a suspended machine. Assume that the store's clock
 * runs faster than ours by at most the client's `drift`. Then, when the store has given the key to
 * somebody else after an expiry, `held` is false and `signal`, when read, is aborted. Once lost or
 * released it stays so.
 *
 * **Not promised.** Between a check and the act that follows it there is always a gap, in which the
 * process may be paused. Only the protected resource can close it, by refusing a `token` that is
 * lower than one it has seen. So send the token with every write. And a revocation by force takes
 * effect at the store at once: the holder learns of it when the notice arrives, not before.
 */
export interface Hold extends AsyncDisposable {
  /** The key, or the first of several. */
  readonly key: Key
  readonly keys: readonly Key[]
  readonly lease: LeaseId
  /**
   * The fencing token: give it to the resource with every write. Reading it checks the clock, and
   * throws `lapsed` or `lost` if it must not be used, and `claim-not-found` after a release.
   */
  readonly token: Token
  /** The token that it was granted with, whatever its state: to show, never to write with. */
  readonly claimToken: Token
  readonly state: HoldState
  /** Whether the state is `held`. */
  readonly held: boolean
  /**
   * Aborted when it is lost, with an error whose code is `lost` and whose `reason` says why. Not
   * aborted when it lapses, and never after a release.
   */
  readonly signal: AbortSignal
  /** Throws as reading `token` does. */
  assertHeld(): void
  /** Milliseconds for which it is held without another renewal; 0 if it is not held. */
  remaining(): number
  /**
   * Asks the store for the full ttl now. Rejected with `lost` if it is lost, and with
   * `unknown-outcome` if the store does not answer. Refused for a strategy that never renews.
   */
  renew(options?: CallOptions): Promise<void>
  /** Says that it is in use. With a strategy that renews on activity, this keeps it. */
  touch(): void
  /**
   * Replaces the value that others can read, on the first key or the given one. Several updates are
   * carried out in the order of the calls. Rejected with `lapsed` or `lost` if it is not held, and
   * with `unknown-outcome` if the store does not answer.
   */
  update(value: string | undefined, key?: Key, options?: CallOptions): Promise<void>
  /**
   * Releases it. A second call, or a call after it was lost, does nothing. Rejected only if the store
   * did not answer: the client then tries again in the background, and it ends with its lease at the
   * latest.
   */
  release(options?: CallOptions): Promise<void>
}

function ignore(): void {}

/** A hold under a lease that the client keeps. It has no timer and, until asked for, no signal. */
export class KeptHold implements Hold {
  readonly keys: readonly Key[]
  readonly revision: Revision
  readonly claimToken: Token
  readonly #core: ClientCore
  readonly #lease: KeptLease
  #loss: Loss | undefined = undefined
  #released: Promise<void> | undefined = undefined
  #controller: AbortController | undefined = undefined
  #updates: Promise<void> | undefined = undefined

  constructor(
    core: ClientCore,
    lease: KeptLease,
    keys: readonly Key[],
    token: Token,
    revision: Revision,
  ) {
    this.#core = core
    this.#lease = lease
    this.keys = keys
    this.claimToken = token
    this.revision = revision
  }

  get key(): Key {
    return this.keys[0]!
  }

  get lease(): LeaseId {
    return this.#lease.id
  }

  get token(): Token {
    this.assertHeld()
    return this.claimToken
  }

  get state(): HoldState {
    if (this.#released !== undefined) return 'released'
    if (this.#loss !== undefined) return 'lost'
    return this.#lease.currentState()
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
    return this.state === 'held' ? this.#lease.remaining() : 0
  }

  renew(options?: CallOptions): Promise<void> {
    const { state } = this
    if (state === 'lost') return Promise.reject(this.#lostError())
    if (state === 'released') return Promise.reject(this.#notUsable(state))
    if (this.#lease.timing.renewal !== 'never') return this.#renew(options)
    return Promise.reject(
      invalid(
        `${show(this.key)} has a strategy that is never renewed: choose 'reservation' to renew by hand`,
      ),
    )
  }

  touch(): void {
    this.#lease.touch()
  }

  update(value: string | undefined, key: Key = this.key, options?: CallOptions): Promise<void> {
    // One after the other: the store keeps the update that arrives last.
    const before = this.#updates ?? Promise.resolve()
    const updated = before.then(() => this.#update(value, key, options))
    this.#updates = updated.catch(ignore)
    return updated
  }

  release(options?: CallOptions): Promise<void> {
    if (this.#released !== undefined) return this.#released
    if (this.#loss !== undefined || !this.#lease.alive) return Promise.resolve()
    let limit = this.#core.limit
    try {
      limit = limitOf(timeoutIn('release', options), limit)
    } catch (error) {
      return Promise.reject(error)
    }
    this.#lease.holds.delete(this.claimToken)
    const { lease, keys, claimToken: token } = this
    const { events } = this.#core
    if (events.hasListeners('released')) events.emit('released', { lease, keys, token })
    this.#released = new ReleaseCall(this.#core, this.#lease, keys, token, limit).start()
    return this.#released
  }

  /** Leaving a block must not hide the error that ended it, so a failed release is ignored. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(ignore)
  }

  /** Called once, by its lease. */
  lose(loss: Loss): void {
    this.#loss = loss
    this.#controller?.abort(this.#lostError())
  }

  async #renew(options: CallOptions | undefined): Promise<void> {
    await this.#lease.renew(limitOf(timeoutIn('renew', options), this.#core.settings.limit))
  }

  async #update(
    value: string | undefined,
    key: Key,
    options: CallOptions | undefined,
  ): Promise<void> {
    this.assertHeld()
    const { lease, claimToken: token } = this
    try {
      const calls = this.#core.callsLimitedTo(timeoutIn('update', options))
      await calls.update({ lease, key, token, value })
    } catch (error) {
      if (this.state === 'lost') this.assertHeld()
      throw error
    }
  }

  #lostError(): LeaseholdError {
    return lostError(this.keys, this.claimToken, (this.#loss ?? this.#lease.loss)!)
  }

  #notUsable(state: HoldState): LeaseholdError {
    const what = `${show(this.key)} (token ${this.claimToken})`
    if (state === 'released') {
      return new LeaseholdError('claim-not-found', `${what} was released: claim it again to use it`)
    }
    const { ttl, grace } = this.#lease.timing
    return new LeaseholdError(
      'lapsed',
      `${what} could not be renewed within its ttl of ${formatDuration(ttl)}: wait until it recovers, or is lost when its grace of ${formatDuration(grace)} is over`,
    )
  }
}
