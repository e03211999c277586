import type { LockOptions } from 'leasehold'
import type { LeaseId } from 'leasehold/port'
import type { SeededRandom } from 'leasehold/testing'

/** Keys with one holder at a time, and one that many read and few write. */
export const LOCK_KEYS = ['job', 'report', 'doc', 'gpu']

/** The locks that a locker requests, and its options. */
export interface LockRequest {
  readonly keys: readonly string[]
  readonly options: LockOptions
  readonly ttl: number
  readonly grace: number
  readonly way: 'lock' | 'try' | 'with'
  /** It aborts after this many milliseconds. */
  readonly abortAfter?: number | undefined
}

/** A lock with random options. Half of the requests have none, like most locks. */
export function drawLockRequest(
  random: SeededRandom,
  plainKeys: number,
  parents: readonly LeaseId[],
): LockRequest {
  const ttl = random.pick([500, 2000, 3000, 3000])
  const grace = random.pick([0, 0, 400])
  const wait = random.pick([100, 1500, 6000])
  const kind = random.next()
  const plain = LOCK_KEYS[random.integer(1, plainKeys) - 1]!
  const way = random.chance(0.2) ? random.pick(['try', 'with'] as const) : 'lock'
  const abortAfter = random.chance(0.08) ? random.between(1, 2000) : undefined
  const base = { ttl, grace, wait, ...someOf(random, ttl, parents) }
  if (kind < 0.55) return { keys: [plain], options: base, ttl, grace, way, abortAfter }
  if (kind < 0.75) {
    const limit = random.pick([1, 2, 2, 3])
    return {
      keys: ['gpu'],
      options: { ...base, mode: 'shared', limit },
      ttl,
      grace,
      way,
      abortAfter,
    }
  }
  const options = random.chance(0.6) ? { ...base, mode: 'shared' as const } : base
  if (kind < 0.87) return { keys: ['doc'], options, ttl, grace, way, abortAfter }
  const keys = ['job', 'report', 'doc'].sort(() => random.next() - 0.5)
  return { keys: keys.slice(0, random.integer(2, 3)), options, ttl, grace, way, abortAfter }
}

function someOf(random: SeededRandom, ttl: number, parents: readonly LeaseId[]): LockOptions {
  const dice = random.next()
  if (dice < 0.04) return { timeout: 300 }
  if (dice < 0.08) return { tied: true }
  if (dice < 0.6) return {}
  if (dice < 0.68) return { maxHold: 2 * ttl }
  if (dice < 0.74 && parents.length > 0) return { parent: random.pick(parents) }
  if (dice < 0.8) return { labels: { team: 'sim' }, value: 'here' }
  if (dice < 0.86) return { renewEvery: ttl / 4 }
  return { strategy: random.pick(['election', 'session', 'reservation', 'cache'] as const) }
}
