import {
  type Changed,
  type End,
  type ErrorCode,
  type Key,
  type LeaseholdError,
  type LeaseId,
  type ReleaseRequest,
  type Revoked,
  type RevokeRequest,
  show,
  type Token,
} from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import type { KeptLease } from '../leases/index.ts'
import { StoreCall } from './store-call.ts'
import { noAnswer, type TimeLimit } from './time-limit.ts'

/** The refusals that say that the lease or the claim does not exist any more. */
export const GONE: ReadonlySet<ErrorCode> = new Set([
  'claim-not-found',
  'lease-not-found',
  'lease-ended',
])

/**
 * Removes a claim. A claim that does not exist any more counts as removed. Any other failure is
 * tried again in the background, because a claim on a lease that is kept would stay forever.
 */
export class ReleaseCall extends StoreCall<Changed, void> {
  readonly repeatable = true
  readonly #lease: KeptLease
  readonly #request: ReleaseRequest
  override readonly limit: TimeLimit

  constructor(
    core: ClientCore,
    lease: KeptLease,
    keys: readonly Key[],
    token: Token,
    limit: TimeLimit = core.limit,
  ) {
    super(core)
    this.limit = limit
    this.#lease = lease
    this.#request = { lease: lease.id, keys, token }
    lease.watch.released(token)
  }

  get pointless(): boolean {
    return !this.#lease.alive
  }

  send(): Promise<Changed> {
    return this.core.store.release(this.#request)
  }

  answered(): undefined {
    this.#lease.retireIfUnused()
  }

  failed(error: LeaseholdError): LeaseholdError | undefined {
    const isDone = GONE.has(error.code) || !this.#lease.alive
    this.#lease.retireIfUnused()
    return isDone ? undefined : this.#unnoticed(error)
  }

  /** Also called when the client closes, which revokes the whole lease. */
  overdue(error: LeaseholdError): LeaseholdError | undefined {
    return this.core.closed ? undefined : this.#unnoticed(error)
  }

  override late(cause: LeaseholdError | undefined): LeaseholdError {
    const { keys } = this.#request
    const then = 'the client continues to try, and it ends with its lease at the latest'
    const what = `the release of ${keys.map(show).join(', ')}`
    return noAnswer(what, this.limit, { isRead: false, then }, cause)
  }

  override insists(error: LeaseholdError): boolean {
    return !GONE.has(error.code) && error.code !== 'closed' && this.#lease.alive
  }

  /** A release that nobody awaits may fail unnoticed: the client tries again by itself. */
  #unnoticed(error: LeaseholdError): LeaseholdError {
    this.result!.catch(() => {})
    return error
  }
}

class RevokeCall extends StoreCall<Revoked> {
  readonly repeatable = true
  readonly pointless = false
  readonly #request: RevokeRequest

  constructor(core: ClientCore, request: RevokeRequest) {
    super(core)
    this.#request = request
    core.begin()
  }

  send(): Promise<Revoked> {
    return this.core.store.revoke(this.#request)
  }

  answered(): undefined {
    this.core.end()
  }

  failed(): undefined {
    this.core.end()
  }

  overdue(): undefined {}
}

/**
 * Revokes a lease of this client, or with `after` sets its last deadline. The reason is the
 * client's own, or the end that somebody else has decided on.
 */
export function revokeLease(
  core: ClientCore,
  lease: LeaseId,
  reason: string | Pick<End, 'by' | 'why'>,
  after?: number,
): void {
  const { by, why } =
    typeof reason === 'string' ? { by: core.settings.holder, why: reason } : reason
  void new RevokeCall(core, { target: { lease }, by, why, after }).start()
}
