import {
  type Clock,
  type End,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Notice,
  type Timer,
  type Token,
} from 'leasehold/port'

/** A place in line, and how long its lease lives without a renewal. */
export interface Place {
  readonly lease: LeaseId
  readonly token: Token
  readonly ttl: number
}

/** Said of claims that were removed because whoever waited did not get them, or went away. */
export const GAVE_UP = 'the wait was over'

const BEATS_PER_TTL = 3
const BEAT_MIN_MS = 5

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
    else signal.addEventListener('abort', abort, { once: true })
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
  if (lost.length > 0) {
    const [{ end } = { end: undefined }] = lost
    if (end !== undefined) throw lostError('the lease has ended', end)
    throw new LeaseholdError('lease-not-found', 'no such lease, or it ended long ago')
  }
  return capped[0]?.remaining ?? ttl
}
