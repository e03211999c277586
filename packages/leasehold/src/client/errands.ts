import type {
  Busy,
  Changed,
  Claimed,
  ClaimRequest,
  End,
  ErrorCode,
  Granted,
  GrantRequest,
  Key,
  LeaseholdError,
  LeaseId,
  ReleaseRequest,
  Revoked,
  RevokeRequest,
  Token,
} from '../port/index.ts'
import type { Attempt } from './attempt.ts'
import { carryOut, type Errand } from './call.ts'
import type { ClientCore } from './core.ts'
import { Keeper } from './keeper.ts'
import { closedError } from './loss.ts'
import type { Timing } from './timing.ts'

/** The refusals that say that what was to be removed is not there. */
const GONE: ReadonlySet<ErrorCode> = new Set(['claim-not-found', 'lease-not-found', 'lease-ended'])

/** How a lease ended by force, if the refusal tells. */
function endOf({ reason, by, why }: LeaseholdError): End | undefined {
  return reason === 'revoked' || reason === 'broken' ? { reason, by, why } : undefined
}

/** Claims keys under a lease that is kept already. */
export class ClaimErrand implements Errand<Claimed | Busy> {
  readonly #core: ClientCore
  readonly #attempt: Attempt
  readonly #keeper: Keeper
  readonly #request: ClaimRequest
  readonly #epoch: number

  constructor(core: ClientCore, attempt: Attempt, keeper: Keeper) {
    this.#core = core
    this.#attempt = attempt
    this.#keeper = keeper
    this.#request = {
      lease: keeper.lease,
      claims: attempt.claims,
      ifFree: attempt.ifFree,
      request: core.requestId(),
    }
    this.#epoch = keeper.beginCall()
  }

  send(): Promise<Claimed | Busy> {
    return this.#core.store.claim(this.#request)
  }

  answered(answer: Claimed | Busy): void {
    if (answer.outcome === 'busy') this.#attempt.busy(answer)
    else this.#attempt.placed(this.#keeper, answer)
    this.#keeper.endCall(this.#epoch)
  }

  failed(error: LeaseholdError): void {
    const keeper = this.#keeper
    if (GONE.has(error.code)) keeper.told(endOf(error))
    if (!keeper.alive) this.#attempt.restart(error)
    else if (error.code === 'limit-exceeded') this.#attempt.leaseFull(keeper, error)
    else this.#attempt.fail(error)
    keeper.endCall(this.#epoch)
    // It may have been done. The store tells how things stand, and what is unknown here is removed.
    if (error.outcome === 'unknown') keeper.channel.open()
  }

  overdue(error: LeaseholdError): void {
    this.#attempt.fail(error)
  }

  get repeatable(): boolean {
    return this.#request.request !== undefined
  }

  get pointless(): boolean {
    return !this.#keeper.alive
  }
}

/** Who asked for a lease, and is told what became of it. Exactly one of them is called. */
export interface Grantee {
  granted(keeper: Keeper, answer: Granted): void
  notFree(answer: Busy): void
  notGranted(error: LeaseholdError): void
}

/** Asks for a new lease. Its deadline counts from the first time that this was sent. */
export class GrantErrand implements Errand<Granted | Busy> {
  readonly pointless = false
  readonly #core: ClientCore
  readonly #grantee: Grantee
  readonly #timing: Timing
  readonly #shared: boolean
  readonly #request: GrantRequest
  #firstSent: number | undefined = undefined
  #late = false

  constructor(
    core: ClientCore,
    grantee: Grantee,
    timing: Timing,
    shared: boolean,
    request: Omit<GrantRequest, 'holder' | 'ttl' | 'grace' | 'request'>,
  ) {
    this.#core = core
    this.#grantee = grantee
    this.#timing = timing
    this.#shared = shared
    this.#request = {
      ...request,
      holder: core.settings.holder,
      ttl: timing.ttl,
      grace: timing.grace,
      request: core.requestId(),
    }
    core.begin()
  }

  send(): Promise<Granted | Busy> {
    this.#firstSent ??= this.#core.agenda.now()
    return this.#core.store.grant(this.#request)
  }

  answered(answer: Granted | Busy): void {
    this.#core.end()
    if (answer.outcome === 'busy') {
      if (!this.#late) this.#grantee.notFree(answer)
    } else if (this.#late || this.#core.closed) {
      // Whoever asked for it was told, or is told now, that it is not to be had.
      revokeLease(this.#core, answer.lease, 'granted too late')
      if (!this.#late) this.#grantee.notGranted(closedError())
    } else {
      const { maxLife } = this.#request
      const stamp = this.#firstSent!
      const keeper = new Keeper(this.#core, answer.lease, this.#timing, stamp, this.#shared)
      if (maxLife !== undefined) keeper.cap(stamp, maxLife, undefined)
      this.#grantee.granted(keeper, answer)
    }
  }

  failed(error: LeaseholdError): void {
    this.#core.end()
    if (!this.#late) this.#grantee.notGranted(error)
  }

  overdue(error: LeaseholdError): void {
    this.#late = true
    this.#grantee.notGranted(error)
  }

  get repeatable(): boolean {
    return this.#request.request !== undefined
  }
}

/**
 * Removes a claim. A claim that is not there any more counts as removed; any other failure is tried
 * again in the background, because a claim on a lease that is kept would stay for ever.
 */
export class ReleaseErrand implements Errand<Changed> {
  readonly repeatable = true
  readonly #core: ClientCore
  readonly #keeper: Keeper
  readonly #request: ReleaseRequest
  readonly #done: ((error?: LeaseholdError) => void) | undefined

  constructor(
    core: ClientCore,
    keeper: Keeper,
    keys: readonly Key[],
    token: Token,
    done?: (error?: LeaseholdError) => void,
  ) {
    this.#core = core
    this.#keeper = keeper
    this.#request = { lease: keeper.lease, keys, token }
    this.#done = done
  }

  send(): Promise<Changed> {
    return this.#core.store.release(this.#request)
  }

  answered(): void {
    this.#done?.()
    this.#keeper.emptied()
  }

  failed(error: LeaseholdError): void {
    this.#done?.(GONE.has(error.code) || !this.#keeper.alive ? undefined : error)
    this.#keeper.emptied()
  }

  /** Told at the client's closing too, when the whole lease is revoked. */
  overdue(error: LeaseholdError): void {
    this.#done?.(this.#core.closed ? undefined : error)
  }

  insists(error: LeaseholdError): boolean {
    return !GONE.has(error.code) && error.code !== 'closed' && this.#keeper.alive
  }

  get pointless(): boolean {
    return !this.#keeper.alive
  }
}

/** Ends one of the client's own leases, or with `after` gives it a last deadline. */
export function revokeLease(core: ClientCore, lease: LeaseId, why: string, after?: number): void {
  revokeLeaseAs(core, lease, { by: core.settings.holder, why }, after)
}

/** The same in another's name: that of whoever has broken it. */
export function revokeLeaseAs(
  core: ClientCore,
  lease: LeaseId,
  { by, why }: Pick<End, 'by' | 'why'>,
  after?: number,
): void {
  const late = after === undefined ? undefined : { after }
  carryOut(core, new RevokeErrand(core, { target: { lease }, by, why, ...late }))
}

class RevokeErrand implements Errand<Revoked> {
  readonly repeatable = true
  readonly pointless = false
  readonly #core: ClientCore
  readonly #request: RevokeRequest

  constructor(core: ClientCore, request: RevokeRequest) {
    this.#core = core
    this.#request = request
    core.begin()
  }

  send(): Promise<Revoked> {
    return this.#core.store.revoke(this.#request)
  }

  answered(): void {
    this.#core.end()
  }

  failed(): void {
    this.#core.end()
  }

  overdue(): void {}
}
