import {
  type Clock,
  type End,
  isLeaseholdError,
  type Key,
  type Lease,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Notice,
  type RequestId,
  type RevokeTarget,
  show,
  type Timer,
  type Token,
} from 'leasehold/port'
import { notWithdrawn, type ServerActions } from '../../access/index.ts'
import type { Call } from '../route.ts'

/** A claim in a queue, and the ttl of its lease. */
export interface ClaimPlace {
  readonly lease: LeaseId
  readonly token: Token
  readonly ttl: number
}

/** A claim that a request waits for, and what to revoke to withdraw it. */
export interface Queued extends ClaimPlace {
  readonly wait: number
  /** The first one decides: while it exists, the claim is not withdrawn. */
  readonly targets: readonly [RevokeTarget, ...RevokeTarget[]]
  /** Who withdraws it, for the history. */
  readonly by: string
}

/** Why a claim was withdrawn: the wait ended, or all callers have gone. */
const TIMED_OUT = 'the wait was over'
const LEFT = 'nobody waits for it any more'

/** No claim has this token, so revoking it changes nothing. */
const NO_TOKEN = Number.MAX_SAFE_INTEGER

const HEARTBEATS_PER_TTL = 3
const HEARTBEAT_MIN_MS = 5

/**
 * The claim of a request with an Idempotency-Key was withdrawn, and no caller was notified that it holds.
 * The next repeat may claim again. `reason` is the callers' refusal, if it was withdrawn just now.
 */
export class Withdrawn extends Error {
  readonly reason: unknown

  constructor(reason?: unknown) {
    super(LEFT)
    this.reason = reason
  }
}

/**
 * Waits until a queued claim holds. Resolves with false if the wait ends first; the claim is then
 * withdrawn. If the callers have gone, the access token has ended or the server stops, the claim is
 * withdrawn and the promise rejects: with `unknown-outcome` if it could not be withdrawn.
 *
 * Several servers may perform the same request, identified by its Idempotency-Key. The store decides
 * with one request id whether it is confirmed or withdrawn: the first server to ask decides for all.
 */
export async function waitUntilHeld(call: Call, queued: Queued): Promise<boolean> {
  const { store, clock, signal, request } = call
  let holds: boolean
  try {
    holds = await untilHeld(store, clock, queued, queued.wait, signal)
  } catch (error) {
    return failed(call, queued, error)
  }
  if (!holds) return !(await withdraw(call, queued, TIMED_OUT))
  if (request === undefined || (await isConfirmed(call.serverActions, request))) return true
  const { end } = await call.serverActions.readLease(queued.lease)
  if (end?.why === LEFT) throw new Withdrawn()
  return false
}

async function failed(call: Call, queued: Queued, error: unknown): Promise<boolean> {
  const { signal, request, principal } = call
  if (request !== undefined && !signal.aborted && isLeaseholdError(error, 'lost')) {
    if (error.why === TIMED_OUT) return false
    if (error.why === LEFT) throw new Withdrawn()
  }
  const isOver = await withdraw(call, queued, LEFT)
  const refusal = signal.aborted ? signal.reason : error
  const reason =
    principal.ended === undefined
      ? refusal
      : new LeaseholdError('unauthenticated', principal.ended, { cause: error })
  const mayClaimAgain = request !== undefined && isOver && !isLeaseholdError(reason, 'lost')
  throw mayClaimAgain ? new Withdrawn(reason) : reason
}

/**
 * Withdraws a claim, even if it holds by now. Returns whether it is gone: with an Idempotency-Key it is
 * not, if another server has confirmed it to a caller.
 */
export async function withdraw(
  { serverActions, request }: Call,
  { targets: [first, ...others], by }: Pick<Queued, 'targets' | 'by'>,
  why: string = LEFT,
): Promise<boolean> {
  try {
    const decided = { target: first, by, why, request: request && settlementOf(request) }
    const { leases, claims } = await serverActions.revoke(decided).catch(ifThere)
    if (request !== undefined && leases + claims === 0) return false
    for (const target of others) await serverActions.revoke({ target, by, why }).catch(ifThere)
    return true
  } catch (error) {
    throw notWithdrawn(error)
  }
}

/** An ended lease needs no withdrawal. */
function ifThere(error: unknown): { readonly leases: number; readonly claims: number } {
  const isOver =
    isLeaseholdError(error, 'lease-ended') || isLeaseholdError(error, 'lease-not-found')
  if (isOver) return { leases: 1, claims: 0 }
  throw error
}

/** Confirms a request, so that no server withdraws it later. False if one already has. */
async function isConfirmed(serverActions: ServerActions, request: RequestId): Promise<boolean> {
  const settlement = settlementOf(request)
  const nothing = { key: settlement, token: NO_TOKEN }
  const { leases, claims } = await serverActions.revoke({ target: nothing, request: settlement })
  return leases + claims === 0
}

function settlementOf(request: RequestId): RequestId {
  return `${request}-settled`
}

/**
 * Renews a granted lease and checks that it still has its claims on these keys, also for a repeated
 * request. Returns its remaining milliseconds.
 */
export async function stillHeld(
  serverActions: ServerActions,
  place: Pick<ClaimPlace, 'lease' | 'token'>,
  keys: readonly Key[],
): Promise<number> {
  const { capped } = await serverActions.renew(place.lease)
  const { ttl } = await stillClaimed(serverActions, place, keys)
  return capped[0]?.remaining ?? ttl
}

/** Throws `lost` if the lease has ended or no longer has these claims. */
export async function stillClaimed(
  serverActions: ServerActions,
  { lease, token }: Pick<ClaimPlace, 'lease' | 'token'>,
  keys: readonly Key[],
): Promise<Lease> {
  const { lease: found, end, claims } = await serverActions.readLease(lease)
  if (found === undefined) throw lostError('the lease has ended', end)
  const lost = keys.find((key) => !claims.some((one) => one.key === key && one.token === token))
  if (lost !== undefined) throw lostError(`the claim on ${show(lost)} was removed`, undefined)
  return found
}

/**
 * Waits until a claim holds all its keys, and renews its lease meanwhile, because a caller in a long
 * poll cannot. Resolves with whether it holds. Rejects if its lease or claim is lost, and with the
 * signal's reason.
 */
export function untilHeld(
  store: LeaseStore,
  clock: Clock,
  place: ClaimPlace,
  wait: number,
  signal: AbortSignal,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    let heartbeat: Timer | undefined
    const end = (settle: () => void) => {
      watch.close()
      deadline.cancel()
      heartbeat?.cancel()
      signal.removeEventListener('abort', abort)
      settle()
    }
    const fail = (error: unknown) => end(() => reject(error))
    const abort = () => fail(signal.reason)
    const watch = store.watch({ lease: place.lease }, (notice) => {
      const result = resultOf(notice, place.token)
      if (result === true) end(() => resolve(true))
      else if (result !== undefined) fail(result)
    })
    const deadline = clock.timer(clock.now() + wait, () => end(() => resolve(false)), true)
    const keep = () => {
      const time = clock.now() + Math.max(place.ttl / HEARTBEATS_PER_TTL, HEARTBEAT_MIN_MS)
      heartbeat = clock.timer(time, () => {
        // The watch reports a loss; the next heartbeat repeats an unanswered one.
        store.renew([place.lease]).catch(() => {})
        keep()
      })
    }
    if (place.ttl < Infinity) keep()
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort)
  })
}

/** True if the claim holds, an error if it never will, `undefined` if it still waits. */
function resultOf(notice: Notice, token: Token): true | LeaseholdError | undefined {
  switch (notice.type) {
    case 'standing': {
      const own = notice.claims.filter((claim) => claim.token === token)
      if (own.length === 0) return lostError('the claim no longer exists', undefined)
      return own.every(({ holds }) => holds) || undefined
    }
    case 'holds':
      return notice.token === token || undefined
    case 'removed':
      return notice.token === token ? lostError('the claim was removed', notice.end) : undefined
    case 'gone':
      return lostError('the lease has ended', notice.end)
    case 'interrupted':
      return notice.error
    default:
      return undefined
  }
}

export function lostError(what: string, end: End | undefined): LeaseholdError {
  const { reason, by, why } = end ?? {}
  const how = reason === undefined ? '' : `: ${reason}${why ? ` (${why})` : ''}`
  return new LeaseholdError('lost', `${what}${how}`, { reason, by, why })
}

/** Renews a lease. Returns its remaining milliseconds. Throws `lost` if it has ended. */
export async function renewed(store: LeaseStore, lease: LeaseId, ttl: number): Promise<number> {
  const { lost, capped } = await store.renew([lease])
  const [gone] = lost
  if (gone?.end !== undefined) throw lostError('the lease has ended', gone.end)
  if (gone !== undefined) {
    throw new LeaseholdError('lease-not-found', 'the lease does not exist, or it ended long ago')
  }
  return capped[0]?.remaining ?? ttl
}
