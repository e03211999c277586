import type { AdaptiveSettings } from './settings.ts'
import type { Bar } from './sketch.ts'

/** The expected average cost of a hold with some ttl. */
export interface ExpectedCost {
  readonly ttl: number
  readonly renewals: number
  /** Milliseconds for which a dead holder blocks the resource. */
  readonly blocked: number
  /** Both together, in the caller's unit. */
  readonly cost: number
}

/**
 * The expected cost of holds of these lengths with this ttl.
 *
 * A lease is renewed every `part * ttl`, so a hold that is shorter than that costs no renewal. A
 * holder that dies blocks the resource until its lease expires: for the ttl minus the time since the
 * last renewal. Every moment of a hold is assumed to be equally likely for a death, so long holds
 * die more often. `deathRate` is the number of deaths per millisecond of holding.
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
    // The time blocked by a death, summed over all moments of the hold. It starts at the ttl after each
    // renewal and decreases with time.
    blocked +=
      weight * (count * (ttl * every - (every * every) / 2) + ttl * rest - (rest * rest) / 2)
  }
  renewals /= weights
  blocked *= deathRate / weights
  const cost = renewals * settings.renewalCost + blocked * settings.blockedCost
  return { ttl, renewals, blocked, cost }
}

/** How many renewals a hold sends. One that would be due exactly at its end is not sent. */
export function renewalsOf(held: number, every: number): number {
  return Math.max(0, Math.ceil(held / every - 1e-9) - 1)
}
