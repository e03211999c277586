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
 * - `absent`: its lease was lost without anybody's will, as in an outage; it comes back by itself.
 * - `ended`: it was released, taken away by force, or its client was closed. Final.
 */
export type PresenceState = 'present' | 'absent' | 'ended'

export interface PresenceEvents {
  /** It cannot be seen any more, and tries to come back. */
  absent: { readonly error: LeaseholdError }
  /** It can be seen again, under a new lease and a new token. */
  returned: { readonly token: Token }
  /** It was taken away by force, or its client was closed. Not told of a release. */
  ended: { readonly error: LeaseholdError }
}

export type OnRevoked = 'end' | 'return'

/** After these nothing is gained by trying again. */
const PERMANENT_ERRORS = new Set(['closed', 'invalid-argument', 'limit-exceeded', 'unsupported'])

/**
 * A key of one's own that is kept claimed, with a text that others read.
 *
 * **Promised.** Where its lease runs out, as in an outage of the store or a stall of this process, it
 * is claimed again as soon as the store can be reached, with the text as it is then. Where it was
 * revoked it stays away, since whoever did that meant it, unless it was told to come back.
 */
export abstract class Presence implements AsyncDisposable {
  abstract readonly key: Key
  readonly #client: Client
  readonly #onRevoked: OnRevoked
  readonly #events = new Emitter<PresenceEvents>()
  readonly #ending = new AbortController()
  #hold: Hold | undefined = undefined
  #state: PresenceState = 'absent'
  #failures = 0
  #timer: Timer | undefined = undefined
  /** Aborted when it has ended for another reason than a release. */
  readonly #ended = new AbortController()

  protected constructor(client: Client, onRevoked: OnRevoked = 'end') {
    this.#client = client
    this.#onRevoked = oneOf('onRevoked', onRevoked, ['end', 'return'])
  }

  /** What others read; asked for anew each time that it enters, as `timing` is. */
  protected abstract value(): string
  protected abstract timing(): HoldOptions

  get state(): PresenceState {
    // The lease is asked, because a timer is late after a stall.
    if (this.#state === 'present' && !this.#hold!.held) return 'absent'
    return this.#state
  }

  get lease(): LeaseId | undefined {
    return this.#hold?.lease
  }

  get token(): Token | undefined {
    return this.#hold?.claimToken
  }

  /** Aborted when it was taken away by force, with who did it and why; not by an outage. */
  get signal(): AbortSignal {
    return this.#ended.signal
  }

  on<Name extends keyof PresenceEvents>(
    name: Name,
    listener: (news: PresenceEvents[Name]) => void,
  ): () => void {
    return this.#events.on(name, listener)
  }

  /** Enters for the first time: fails where it cannot. */
  protected async enter({ wait, signal }: Pick<HoldOptions, 'wait' | 'signal'>): Promise<this> {
    await this.#claim({ wait, signal })
    return this
  }

  /**
   * Tells others the text as it is now. Where that fails they will be told when it returns, or when
   * the store answers again.
   */
  protected async publish(): Promise<void> {
    if (this.#state !== 'present') {
      const fate = this.#state === 'absent' ? 'it will be told when it returns' : 'it has ended'
      throw new LeaseholdError('lost', `${show(this.key)} is not registered now: ${fate}`)
    }
    try {
      await this.#hold!.update(this.value())
      this.#failures = 0
    } catch (error) {
      const mayHelp =
        isLeaseholdError(error) && (error.outcome === 'unknown' || error.code === 'lapsed')
      // While it is absent the timer is the return's.
      if (mayHelp && this.#state === 'present') this.#publishLater()
      throw error
    }
  }

  /** Leaves at once. Doing so twice does nothing. */
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

  async #claim(options: Pick<HoldOptions, 'wait' | 'signal'>): Promise<void> {
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
