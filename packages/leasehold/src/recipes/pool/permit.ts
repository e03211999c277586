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

/** A warning that a permit will be taken away: the `reason` of `Permit.notice`. */
export interface PreemptionNotice {
  /** Who asks for the permit: the waiting holder, its tenant and its priority. */
  readonly by: string
  readonly tenant: string
  readonly priority: number
  /** How many milliseconds remain, counted from when the notice was written. */
  readonly period: number
}

/**
 * The right to use resources for a limited time.
 *
 * **Promised.** The same as for a lock (see `Hold`): `token`, `assertHeld` and `signal` check the
 * clock on every access, and nobody else holds the resources meanwhile.
 *
 * **Not promised.** A paused process may not stop in time: send `token` with every write.
 */
export interface Permit extends AsyncDisposable {
  /** The name of the resource, or of the first one. */
  readonly resource: string
  readonly resources: readonly string[]
  /** The held keys: one per resource, or one per share. */
  readonly keys: readonly Key[]
  readonly tenant: string
  readonly kind: string
  readonly lease: LeaseId
  /** The fencing token, one for everything taken together. Throws if the permit is not held. */
  readonly token: Token
  readonly claimToken: Token
  readonly state: HoldState
  readonly held: boolean
  /** Aborted when the permit is lost, with the reason. After a preemption also by whom and why. */
  readonly signal: AbortSignal
  /**
   * Aborted when the permit is being preempted: `reason` is a `PreemptionNotice`. Save the work and
   * release the permit, because it is taken away when the period is over. The request that asked
   * may still give up.
   */
  readonly notice: AbortSignal
  assertHeld(): void
  /** Milliseconds until it ends, if it is not extended. */
  remaining(): number
  /** Books the whole `ttl` again, from now. */
  extend(): Promise<void>
  /** Returns the permit. Does nothing if it was already returned or lost. */
  release(): Promise<void>
}

export interface PermitDependencies {
  readonly client: Client
  readonly records: UsageRecords
  readonly halfLife: number
  ended(permit: HeldPermit): void
}

export interface TakenResources {
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
  /** By the store's clock, like all usage records. By the local clock if that read failed. */
  readonly #since: Promise<Time>
  #ended: Promise<void> | undefined = undefined

  constructor(
    dependencies: PermitDependencies,
    { hold, request, waiter, resources, cost }: TakenResources,
  ) {
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
    const json = permitJson({ ...this.#request, booked }, this.#waiter)
    for (const key of this.keys) await this.#hold.update(json, key)
    this.#dependencies.records.extended(this.claimToken, booked)
  }

  async release(): Promise<void> {
    // Recorded first: the next decision must count what this tenant has used.
    if (this.state === 'held' || this.state === 'lapsed') await this.#end()
    await this.#hold.release()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end()
    await this.#hold[Symbol.asyncDispose]()
  }

  /** Called by the pool when the permit is being preempted. */
  notify(notice: PreemptionNotice): void {
    if (this.state === 'held' || this.state === 'lapsed') this.#noticed.abort(notice)
  }

  #heldFor(): number {
    return this.#dependencies.client.now() - this.#takenAt
  }

  #end(): Promise<void> {
    this.#ended ??= this.#recordEnd(this.#heldFor())
    return this.#ended
  }

  async #recordEnd(held: number): Promise<void> {
    const { records, halfLife } = this.#dependencies
    this.#dependencies.ended(this)
    const lost: unknown = this.signal.reason
    // A permit that was taken by force says nothing about how long its kind is held.
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
      // The store is unreachable, so the local time is used.
    }
    return this.#takenAt
  }
}
