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
import { notWithdrawn, type ServerActs } from '../access/index.ts'
import type { Call } from './route.ts'

/** A place in line, and how long its lease lives without a renewal. */
export interface Place {
  readonly lease: LeaseId
  readonly token: Token
  readonly ttl: number
}

/** A place that a request waits for, and what is revoked to give it up. */
export interface Queued extends Place {
  readonly wait: number
  /** The first decides: while it is there, the claim is not withdrawn. */
  readonly targets: readonly [RevokeTarget, ...RevokeTarget[]]
  /** Who gives it up, for the history. */
  readonly by: string
}

/** Why a claim was withdrawn: it did not hold in time, or nobody waits for it any more. */
const TIMED_OUT = 'the wait was over'
const LEFT = 'nobody waits for it any more'

/** No claim has this token: to revoke it changes nothing. */
const NO_TOKEN = Number.MAX_SAFE_INTEGER

const BEATS_PER_TTL = 3
const BEAT_MIN_MS = 5

/**
 * The claim of a request with an Idempotency-Key was withdrawn, and nobody was told that it holds: the
 * next repeat may claim anew. `reason` is why the callers are refused, if it was withdrawn just now.
 */
export class Withdrawn extends Error {
  readonly reason: unknown

  constructor(reason?: unknown) {
    super(LEFT)
    this.reason = reason
  }
}

/**
 * Waits until a queued claim holds. False if it did not in time: it is then withdrawn. Rejected if the
 * callers have gone, may do nothing any more, or the server stops, also after it is withdrawn; and
 * with `unknown-outcome` if it could not be.
 *
 * Several servers may carry out the same request, known by its Idempotency-Key. The store decides
 * whether it is told as held or withdrawn, by one request id: the first to ask wins for all.
 */
export async function comesToHold(call: Call, queued: Queued): Promise<boolean> {
  const { store, clock, signal, request } = call
  let holds: boolean
  try {
    holds = await untilHolds(store, clock, queued, queued.wait, signal)
  } catch (error) {
    return failed(call, queued, error)
  }
  if (!holds) return !(await withdraw(call, queued, TIMED_OUT))
  if (request === undefined || (await isConfirmed(call.acts, request))) return true
  const { end } = await call.acts.readLease(queued.lease)
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
  const mayClaimAnew = request !== undefined && isOver && !isLeaseholdError(reason, 'lost')
  throw mayClaimAnew ? new Withdrawn(reason) : reason
}

/**
 * Gives up a claim, also one that came to hold meanwhile. Whether it is gone: with an Idempotency-Key
 * it is not if another server has told a caller that it holds.
 */
export async function withdraw(
  { acts, request }: Call,
  { targets: [first, ...others], by }: Pick<Queued, 'targets' | 'by'>,
  why: string = LEFT,
): Promise<boolean> {
  try {
    const decided = { target: first, by, why, request: request && settlementOf(request) }
    const { leases, claims } = await acts.revoke(decided).catch(ifThere)
    if (request !== undefined && leases + claims === 0) return false
    for (const target of others) await acts.revoke({ target, by, why }).catch(ifThere)
    return true
  } catch (error) {
    throw notWithdrawn(error)
  }
}

/** A lease that has ended needs no withdrawal. */
function ifThere(error: unknown): { readonly leases: number; readonly claims: number } {
  const isOver =
    isLeaseholdError(error, 'lease-ended') || isLeaseholdError(error, 'lease-not-found')
  if (isOver) return { leases: 1, claims: 0 }
  throw error
}

/** From now on no server withdraws it, unless one has done so before. */
async function isConfirmed(acts: ServerActs, request: RequestId): Promise<boolean> {
  const settlement = settlementOf(request)
  const nothing = { key: settlement, token: NO_TOKEN }
  const { leases, claims } = await acts.revoke({ target: nothing, request: settlement })
  return leases + claims === 0
}

function settlementOf(request: RequestId): RequestId {
  return `${request}-settled`
}

/**
 * What a granted lease is answered with, also to a repeat: it is renewed, and must still have its
 * claims on these keys. How many milliseconds it has.
 */
export async function stillHeld(
  acts: ServerActs,
  place: Pick<Place, 'lease' | 'token'>,
  keys: readonly Key[],
): Promise<number> {
  const { capped } = await acts.renew(place.lease)
  const { ttl } = await stillClaimed(acts, place, keys)
  return capped[0]?.remaining ?? ttl
}

/** Refuses with `lost` if the lease has ended, or has no such claim any more. */
export async function stillClaimed(
  acts: ServerActs,
  { lease, token }: Pick<Place, 'lease' | 'token'>,
  keys: readonly Key[],
): Promise<Lease> {
  const { lease: found, end, claims } = await acts.readLease(lease)
  if (found === undefined) throw lostError('what was granted has ended', end)
  const lost = keys.find((key) => !claims.some((one) => one.key === key && one.token === token))
  if (lost !== undefined) throw lostError(`the claim on ${show(lost)} was removed`, undefined)
  return found
}

/**
 * Waits until a claim holds all its keys, for at most so long, and keeps its lease meanwhile: who
 * waits by a long poll has no hand free to do so. Whether it holds. Rejected where its lease or
 * claim was taken away, and with the signal's reason.
 */
export function untilHolds(
  store: LeaseStore,
  clock: Clock,
  place: Place,
  wait: number,
  signal: AbortSignal,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    let beat: Timer | undefined
    const end = (settle: () => void) => {
      watch.close()
      deadline.cancel()
      beat?.cancel()
      signal.removeEventListener('abort', abort)
      settle()
    }
    const fail = (error: unknown) => end(() => reject(error))
    const abort = () => fail(signal.reason)
    const watch = store.watch({ lease: place.lease }, (notice) => {
      const heard = meaningOf(notice, place.token)
      if (heard === true) end(() => resolve(true))
      else if (heard !== undefined) fail(heard)
    })
    const deadline = clock.timer(clock.now() + wait, () => end(() => resolve(false)), true)
    const keep = () => {
      const time = clock.now() + Math.max(place.ttl / BEATS_PER_TTL, BEAT_MIN_MS)
      beat = clock.timer(time, () => {
        // That it is lost is told by the watch; that it was not answered shows in the next.
        store.renew([place.lease]).catch(() => {})
        keep()
      })
    }
    if (place.ttl < Infinity) keep()
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort)
  })
}

/** True where the claim holds, an error where it never will, nothing where it waits on. */
function meaningOf(notice: Notice, token: Token): true | LeaseholdError | undefined {
  switch (notice.type) {
    case 'standing': {
      const own = notice.claims.filter((claim) => claim.token === token)
      if (own.length === 0) return lostError('the claim is not there any more', undefined)
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

/** Gives a lease its full ttl: how many milliseconds it has, or `lost` where it is no more. */
export async function renewed(store: LeaseStore, lease: LeaseId, ttl: number): Promise<number> {
  const { lost, capped } = await store.renew([lease])
  const [gone] = lost
  if (gone?.end !== undefined) throw lostError('the lease has ended', gone.end)
  if (gone !== undefined) {
    throw new LeaseholdError('lease-not-found', 'no such lease, or it ended long ago')
  }
  return capped[0]?.remaining ?? ttl
}
