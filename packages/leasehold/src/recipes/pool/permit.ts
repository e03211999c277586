import type { Client, Hold, HoldState } from '../../client/index.ts'
import {
  isLeaseholdError,
  type Key,
  type LeaseId,
  type Time,
  type Token,
} from '../../port/index.ts'
import { permitJson, type Request } from './request.ts'
import type { OpenPermit } from './usage/usage.ts'
import type { UsageRecords } from './usage/usage-records.ts'

/** That a permit will be taken back, told by the `reason` of `Permit.notice`. */
export interface PreemptionNotice {
  /** For whom: the holder that waits, its tenant and its priority. */
  readonly by: string
  readonly tenant: string
  readonly priority: number
  /** How many milliseconds are left from when it was written. */
  readonly period: number
}

/**
 * The right to use what was taken, for a time.
 *
 * **Promised.** What a lock's hold promises (see `Hold`): `token`, `assertHeld` and `signal` look at
 * the clock when they are asked, and nobody else holds any of it meanwhile.
 *
 * **Not promised.** That a paused process stops in time: send `token` with every write.
 */
export interface Permit extends AsyncDisposable {
  /** The name of the resource, or the first of several. */
  readonly resource: string
  readonly resources: readonly string[]
  /** The keys that are held: one for each resource, or for each share of one. */
  readonly keys: readonly Key[]
  readonly tenant: string
  readonly kind: string
  readonly lease: LeaseId
  /** The fencing token: one for all that was taken together. Throws where it must not be used. */
  readonly token: Token
  readonly claimToken: Token
  readonly state: HoldState
  readonly held: boolean
  /** Aborted when it is lost, with the reason; for one that was taken back also by whom and why. */
  readonly signal: AbortSignal
  /**
   * Aborted when somebody has asked for it back: its `reason` is a `PreemptionNotice`. Save the work
   * and release it; when the period is over it is taken. The one who asked may yet give up.
   */
  readonly notice: AbortSignal
  assertHeld(): void
  /** Milliseconds for which it is held without being extended. */
  remaining(): number
  /** UsageRecords it for its whole `ttl` from now. */
  extend(): Promise<void>
  /** Returns it. Doing so twice, or after it was lost, does nothing. */
  release(): Promise<void>
}

/** What a permit must know of its pool. */
export interface PermitDependencies {
  readonly client: Client
  readonly records: UsageRecords
  readonly halfLife: number
  ended(permit: HeldPermit): void
}

export interface Taken {
  readonly hold: Hold
  readonly request: Request
  readonly waiter: Token | undefined
  readonly resources: readonly string[]
  readonly cost: number
}

export class HeldPermit implements Permit {
  readonly resources: readonly string[]
  readonly #dependencies: PermitDependencies
  readonly #hold: Hold
  readonly #request: Request
  readonly #waiter: Token | undefined
  readonly #cost: number
  readonly #noticed = new AbortController()
  readonly #takenAt: number
  /** On the store's clock, which the records go by; one's own only where that could not be learnt. */
  readonly #since: Promise<Time>
  #ended: Promise<void> | undefined = undefined

  constructor(dependencies: PermitDependencies, { hold, request, waiter, resources, cost }: Taken) {
    this.#dependencies = dependencies
    this.#hold = hold
    this.#request = request
    this.#waiter = waiter
    this.#cost = cost
    this.resources = resources
    this.#takenAt = dependencies.client.now()
    this.#since = this.#storeTime()
    void this.#entry().then((entry) => {
      if (this.#ended === undefined) dependencies.records.opened(entry, dependencies.halfLife)
    })
    hold.signal.addEventListener('abort', () => void this.#end(), { once: true })
  }

  get resource(): string {
    return this.resources[0]!
  }

  get keys(): readonly Key[] {
    return this.#hold.keys
  }

  get tenant(): string {
    return this.#request.tenant
  }

  get kind(): string {
    return this.#request.kind
  }

  get lease(): LeaseId {
    return this.#hold.lease
  }

  get token(): Token {
    return this.#hold.token
  }

  get claimToken(): Token {
    return this.#hold.claimToken
  }

  get state(): HoldState {
    return this.#hold.state
  }

  get held(): boolean {
    return this.#hold.held
  }

  get signal(): AbortSignal {
    return this.#hold.signal
  }

  get notice(): AbortSignal {
    return this.#noticed.signal
  }

  assertHeld(): void {
    this.#hold.assertHeld()
  }

  remaining(): number {
    return this.#hold.remaining()
  }

  async extend(): Promise<void> {
    await this.#hold.renew()
    if (this.#request.strategy !== 'reservation') return
    const booked = Math.round(this.#heldFor() + this.#request.ttl)
    const text = permitJson({ ...this.#request, booked }, this.#waiter)
    for (const key of this.keys) await this.#hold.update(text, key)
    this.#dependencies.records.extended(this.claimToken, booked)
  }

  async release(): Promise<void> {
    // Entered first: whoever decides who is next must count what this tenant has used.
    if (this.state === 'held' || this.state === 'lapsed') await this.#end()
    await this.#hold.release()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end()
    await this.#hold[Symbol.asyncDispose]()
  }

  /** Called by its pool when somebody asks for it back. */
  announce(notice: PreemptionNotice): void {
    if (this.state === 'held' || this.state === 'lapsed') this.#noticed.abort(notice)
  }

  #heldFor(): number {
    return this.#dependencies.client.now() - this.#takenAt
  }

  #end(): Promise<void> {
    this.#ended ??= this.#enterEnd(this.#heldFor())
    return this.#ended
  }

  async #enterEnd(held: number): Promise<void> {
    const { records, halfLife } = this.#dependencies
    this.#dependencies.ended(this)
    const lost: unknown = this.signal.reason
    // How long it was held says nothing of its kind where it was taken by force.
    const kind = isLeaseholdError(lost) && lost.reason !== 'expired' ? undefined : this.kind
    await records.closed(await this.#entry(), kind, held, halfLife)
  }

  async #entry(): Promise<OpenPermit> {
    const { tenant, booked } = this.#request
    const since = await this.#since
    return { token: this.claimToken, tenant, cost: this.#cost, since, booked }
  }

  async #storeTime(): Promise<Time> {
    try {
      const { claims } = await this.#dependencies.client.store.read({ key: this.keys[0]! })
      const own = claims.find(({ token }) => token === this.claimToken)
      if (own !== undefined) return own.claimedAt
    } catch {
      // The store cannot be asked now; the entry will say as much.
    }
    return this.#takenAt
  }
}
