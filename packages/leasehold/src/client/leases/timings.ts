import {
  type Duration,
  formatDuration,
  type Guarantees,
  invalid,
  milliseconds,
  show,
} from '../../port/index.ts'

/**
 * When a lease is renewed: `automatic` by the heartbeat, `activity` when its holder uses it
 * (`touch`), `explicit` when its holder asks (`renew`), or `never`.
 */
export type Renewal = 'automatic' | 'activity' | 'explicit' | 'never'

export interface Strategy {
  readonly ttl: number
  readonly renewal: Renewal
  /** The fraction of the ttl between two renewals; for `activity` the minimum between two. */
  readonly part: number
}

/** The strategies. A ttl option replaces the ttl of the strategy. */
export const STRATEGIES = {
  /** A critical section: half of the ttl is left for retries if a renewal fails. */
  lock: { ttl: 30_000, renewal: 'automatic', part: 1 / 2 },
  /** A leader: a short ttl replaces a dead leader soon, and allows more tries within it. */
  election: { ttl: 10_000, renewal: 'automatic', part: 1 / 3 },
  /** A session of a user or an agent: it lives while it is used. */
  session: { ttl: 20 * 60_000, renewal: 'activity', part: 1 / 20 },
  /** A reservation for somebody: it ends unless they extend it. */
  reservation: { ttl: 60 * 60_000, renewal: 'explicit', part: 1 },
  /** The right to fill a cache: it simply expires. */
  cache: { ttl: 10 * 60_000, renewal: 'never', part: 1 },
} as const satisfies Record<string, Strategy>

export type StrategyName = keyof typeof STRATEGIES

export interface TimingOptions {
  /** `lock` if not given. */
  readonly strategy?: StrategyName | undefined
  /** How long it is held without a renewal. The strategy's ttl if not given. */
  readonly ttl?: Duration | undefined
  /** Extra time in which nobody else can hold it and a renewal recovers it. 0 if not given. */
  readonly grace?: Duration | undefined
  /** The time from one renewal to the next, for strategies that renew automatically. */
  readonly renewEvery?: Duration | undefined
  /** The maximum time from the first hold to the end. No limit if not given. */
  readonly maxHold?: Duration | undefined
}

/** How much a client distrusts its clock: see `Timing`. */
export interface Caution {
  /** How much faster the store's clock may run than ours, as a fraction. */
  readonly drift: number
  /** An absolute margin in milliseconds; `undefined` for the default. */
  readonly margin: number | undefined
}

/**
 * The times of a lease, all in milliseconds.
 *
 * The store ends a lease at the earliest `ttl + grace` after it performed the last renewal, on its
 * own clock. The holder counts from the moment it *sent* that renewal, which was earlier. Its clock
 * may run slower than the store's by the fraction `drift`, and it stops `margin` earlier. So the
 * holder always stops first. Clock offsets and slow answers do not matter.
 */
export interface Timing {
  readonly ttl: number
  readonly grace: number
  readonly maxHold: number
  readonly renewal: Renewal
  /** From one renewal to the next; `Infinity` if none is sent automatically. */
  readonly every: number
  readonly rate: number
  readonly margin: number
  /** How long after it sent a renewal the holder relies on the lease. */
  readonly believed: number
  /** How long after the holder sent a renewal nobody else can hold. */
  readonly kept: number
}

const MARGIN_MAX_MS = 50
const MARGIN_FRACTION = 0.05

/** The timing for these options. Refuses impossible ones and names their values. */
export function timingOf(options: TimingOptions, caution: Caution, guarantees: Guarantees): Timing {
  const strategy = strategyOf(options.strategy)
  const maxHold =
    options.maxHold === undefined ? Infinity : milliseconds(options.maxHold, 'maxHold')
  const ttl = ttlOf(options, strategy, maxHold, guarantees)
  const grace = options.grace === undefined ? 0 : milliseconds(options.grace, 'grace')
  if (grace === Infinity) {
    throw invalid(`grace is infinite: give a finite grace, or an infinite ttl to hold forever`)
  }
  const rate = 1 - caution.drift
  const margin = caution.margin ?? Math.min(MARGIN_MAX_MS, ttl * MARGIN_FRACTION)
  const believed = ttl * rate - margin
  if (!(believed > 0)) {
    throw invalid(
      `margin ${formatDuration(margin)} and drift ${caution.drift} leave nothing of ttl ${formatDuration(ttl)}: use a longer ttl or a shorter margin`,
    )
  }
  const every = everyOf(options, strategy, ttl, believed)
  const kept = (ttl + grace) * rate - margin
  return { ttl, grace, maxHold, renewal: strategy.renewal, every, rate, margin, believed, kept }
}

function strategyOf(name: StrategyName | undefined): Strategy {
  if (name === undefined) return STRATEGIES.lock
  if (Object.hasOwn(STRATEGIES, name)) return STRATEGIES[name]
  throw invalid(
    `strategy is ${show(name)}: it must be one of ${Object.keys(STRATEGIES).join(', ')}`,
  )
}

function ttlOf(
  options: TimingOptions,
  strategy: Strategy,
  maxHold: number,
  guarantees: Guarantees,
): number {
  const { min, max } = guarantees.ttl
  if (maxHold < min) {
    throw invalid(
      `maxHold is ${formatDuration(maxHold)}; the minimum of this store is ${formatDuration(min)}. Use a longer maxHold`,
    )
  }
  if (options.ttl === undefined) return Math.min(Math.max(strategy.ttl, min), max, maxHold)
  const ttl = milliseconds(options.ttl, 'ttl')
  if (ttl < min) {
    throw invalid(
      `ttl is ${formatDuration(ttl)}; the minimum of this store is ${formatDuration(min)}. Use a longer ttl`,
    )
  }
  if (ttl > max && ttl < Infinity) {
    throw invalid(
      `ttl is ${formatDuration(ttl)}; the maximum of this store is ${formatDuration(max)}. Use a shorter ttl, or 'infinite'`,
    )
  }
  if (ttl > maxHold) {
    throw invalid(
      `ttl ${formatDuration(ttl)} is longer than maxHold ${formatDuration(maxHold)}: use a shorter ttl or a longer maxHold`,
    )
  }
  return ttl
}

function everyOf(
  options: TimingOptions,
  strategy: Strategy,
  ttl: number,
  believed: number,
): number {
  if (strategy.renewal !== 'automatic') {
    if (options.renewEvery === undefined) return ttl * strategy.part
    throw invalid(
      `renewEvery is ${show(options.renewEvery)}, but strategy '${options.strategy}' is not renewed automatically: leave it out, or use the strategy 'lock'`,
    )
  }
  if (options.renewEvery === undefined) return ttl * strategy.part
  const every = milliseconds(options.renewEvery, 'renewEvery')
  if (every > 0 && every < believed) return every
  throw invalid(
    `renewEvery ${formatDuration(every)} must be more than 0 and less than ttl ${formatDuration(ttl)} less its safety margin (${formatDuration(believed)}): use a third or a half of the ttl, which leaves time for retries`,
  )
}
