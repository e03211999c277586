import type { AdaptiveSettings } from './settings.ts'
import type { Bar } from './sketch.ts'

/** What a hold is expected to cost with some ttl, on average. */
export interface ExpectedCost {
  readonly ttl: number
  readonly renewals: number
  /** Milliseconds for which the resource is blocked because its holder is dead. */
  readonly blocked: number
  /** Both, in the caller's unit. */
  readonly cost: number
}

/**
 * What holds of these lengths would cost with this ttl.
 *
 * A lease is renewed every `part * ttl`, so a hold that is shorter than that costs no renewal. A
 * holder that dies blocks the resource until its lease runs out: for the ttl less what has passed
 * since the last renewal. It is assumed that a holder is as likely to die in one moment of its hold
 * as in another, so that those who hold for long die more often: `deathRate` is how many die in one
 * millisecond of holding.
 */
export function expectedCost(
  ttl: number,
  bars: readonly Bar[],
  deathRate: number,
  settings: AdaptiveSettings,
): ExpectedCost {
  const every = ttl * settings.part
  let weights = 0
  let renewals = 0
  let blocked = 0
  for (const { ms, weight } of bars) {
    const count = renewalsOf(ms, every)
    const rest = ms - count * every
    weights += weight
    renewals += weight * count
    // The time blocked by a death, added up over all moments of the hold: it falls from the ttl
    // with each moment since a renewal.
    blocked +=
      weight * (count * (ttl * every - (every * every) / 2) + ttl * rest - (rest * rest) / 2)
  }
  renewals /= weights
  blocked *= deathRate / weights
  const cost = renewals * settings.renewalCost + blocked * settings.blockedCost
  return { ttl, renewals, blocked, cost }
}

/** How many renewals are sent in a hold: one that would be due at its end is not. */
export function renewalsOf(held: number, every: number): number {
  return Math.max(0, Math.ceil(held / every - 1e-9) - 1)
}
