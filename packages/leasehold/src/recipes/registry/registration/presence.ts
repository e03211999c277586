import { type Client, Emitter, type Hold, type HoldOptions } from '../../../client/index.ts'
import {
  backoff,
  isLeaseholdError,
  type Key,
  LeaseholdError,
  type LeaseId,
  show,
  type Timer,
  type Token,
} from '../../../port/index.ts'
import { oneOf } from '../../arguments.ts'

/**
 * - `present`: others see it.
 * - `absent`: its lease was lost unintentionally, as in an outage. It returns by itself.
 * - `ended`: it was released, revoked, or its client was closed. Final.
 */
export type PresenceState = 'present' | 'absent' | 'ended'

export interface PresenceEvents {
  /** Others no longer see it. It tries to return. */
  absent: { readonly error: LeaseholdError }
  /** Others see it again, under a new lease and a new token. */
  returned: { readonly token: Token }
  /** It was revoked, or its client was closed. Not reported for a release. */
  ended: { readonly error: LeaseholdError }
}

export type OnRevoked = 'end' | 'return'

/** Errors that a retry cannot fix. */
const PERMANENT_ERRORS = new Set(['closed', 'invalid-argument', 'limit-exceeded', 'unsupported'])

type EnterOptions = Pick<HoldOptions, 'wait' | 'timeout' | 'signal'>

/**
 * Keeps a key claimed, with a value that others read.
 *
 * **Promised.** If its lease expires, as in an outage of the store or a pause of this process, it
 * claims the key again as soon as the store is reachable, with the current value. If it was
 * revoked, it stays away, because that was intended, unless `onRevoked` says otherwise.
 */
export abstract class Presence implements AsyncDisposable {
  abstract readonly key: Key
  readonly #client: Client
  readonly #onRevoked: OnRevoked
  readonly #events = new Emitter<PresenceEvents>({ absent: true, returned: true, ended: true })
  readonly #ending = new AbortController()
  #hold: Hold | undefined = undefined
  #state: PresenceState = 'absent'
  #failures = 0
  #timer: Timer | undefined = undefined
  /** Aborted when it has ended other than by a release. */
  readonly #ended = new AbortController()

  protected constructor(client: Client, onRevoked: OnRevoked = 'end') {
    this.#client = client
    this.#onRevoked = oneOf('onRevoked', onRevoked, ['end', 'return'])
  }

  /** The value that others read. Called at every claim, like `timing`. */
  protected abstract value(): string
  protected abstract timing(): HoldOptions

  get state(): PresenceState {
    // Checks the lease, because a timer is late after a pause.
    if (this.#state === 'present' && !this.#hold!.held) return 'absent'
    return this.#state
  }

  get lease(): LeaseId | undefined {
    return this.#hold?.lease
  }

  get token(): Token | undefined {
    return this.#hold?.claimToken
  }

  /** Aborted when it was revoked, with who did it and why; not by an outage. */
  get signal(): AbortSignal {
    return this.#ended.signal
  }

  on<Name extends keyof PresenceEvents>(
    name: Name,
    listener: (event: PresenceEvents[Name]) => void,
  ): () => void {
    return this.#events.on(name, listener)
  }

  /** Claims the key for the first time. Fails if that fails. */
  protected async enter({ wait, timeout, signal }: EnterOptions): Promise<this> {
    await this.#claim({ wait, timeout, signal })
    return this
  }

  /** Publishes the current value. If that fails, it is retried later. */
  protected async publish(): Promise<void> {
    if (this.#state !== 'present') {
      const fate =
        this.#state === 'absent' ? 'the change is published when it returns' : 'it has ended'
      throw new LeaseholdError('lost', `${show(this.key)} is not registered now: ${fate}`)
    }
    try {
      await this.#hold!.update(this.value())
      this.#failures = 0
    } catch (error) {
      const mayHelp =
        isLeaseholdError(error) && (error.outcome === 'unknown' || error.code === 'lapsed')
      // While it is absent, `#return` owns the timer.
      if (mayHelp && this.#state === 'present') this.#publishLater()
      throw error
    }
  }

  /** Leaves at once. A second call does nothing. */
  async release(): Promise<void> {
    if (this.#state === 'ended') return
    this.#end()
    await this.#hold?.release()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => {})
  }

  #end(): void {
    this.#state = 'ended'
    this.#timer?.cancel()
    this.#ending.abort()
  }

  async #claim(options: EnterOptions): Promise<void> {
    const value = this.value()
    const claims = [{ key: this.key, value }]
    const hold = await this.#client.hold(claims, { ...this.timing(), ...options })
    if (this.#state === 'ended') {
      await hold[Symbol.asyncDispose]()
      return
    }
    this.#hold = hold
    this.#state = 'present'
    this.#failures = 0
    const { signal } = hold
    signal.addEventListener('abort', () => this.#lost(hold, signal.reason))
    if (signal.aborted) this.#lost(hold, signal.reason)
    else if (this.value() !== value) await this.publish().catch(() => {})
  }

  #lost(hold: Hold, error: LeaseholdError): void {
    if (this.#state !== 'present') return
    this.#state = 'absent'
    if (this.#mayReturn(error)) {
      this.#emit('absent', error.message, hold.claimToken)
      this.#events.emit('absent', { error })
      void this.#return()
    } else this.#fail(error)
  }

  #mayReturn({ reason }: LeaseholdError): boolean {
    if (reason === 'expired' || reason === 'unreachable') return true
    return reason !== 'closed' && this.#onRevoked === 'return'
  }

  async #return(): Promise<void> {
    try {
      await this.#claim({ signal: this.#ending.signal })
      if (this.#state !== 'present') return
      const token = this.#hold!.claimToken
      this.#emit('returned', 'it is registered again', token)
      this.#events.emit('returned', { token })
    } catch (error) {
      if (this.#state === 'ended') return
      if (isLeaseholdError(error) && PERMANENT_ERRORS.has(error.code)) this.#fail(error)
      else this.#returnLater()
    }
  }

  #returnLater(): void {
    const { clock, random } = this.#client
    const rest = backoff(this.#failures++, random)
    this.#timer = clock.timer(clock.now() + rest, () => void this.#return())
  }

  #publishLater(): void {
    const { clock, random } = this.#client
    const rest = backoff(this.#failures++, random)
    this.#timer?.cancel()
    this.#timer = clock.timer(clock.now() + rest, () => void this.publish().catch(() => {}))
  }

  #fail(error: LeaseholdError): void {
    this.#end()
    this.#emit('ended', error.message, this.#hold!.claimToken)
    this.#ended.abort(error)
    this.#events.emit('ended', { error })
  }

  #emit(event: keyof PresenceEvents, detail: string, token: Token): void {
    const level = event === 'returned' ? 'info' : 'warn'
    this.#client.emit({ recipe: 'registry', event, key: this.key, token, detail, level })
  }
}
