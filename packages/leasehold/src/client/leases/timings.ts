import {
  type Duration,
  formatDuration,
  type Guarantees,
  invalid,
  milliseconds,
  show,
} from '../../port/index.ts'

/**
 * When a lease is renewed: `automatic` by the heartbeat, `activity` when its holder says that it is
 * in use (`touch`), `explicit` when its holder asks (`renew`), or `never`.
 */
export type Renewal = 'automatic' | 'activity' | 'explicit' | 'never'

export interface Strategy {
  readonly ttl: number
  readonly renewal: Renewal
  /** The part of the ttl after which it is renewed; for `activity` the least between two renewals. */
  readonly part: number
}

/** The strategies there are. A ttl given with one replaces the strategy's own. */
export const STRATEGIES = {
  /** A critical section: half of the ttl is left for retries when a renewal fails. */
  lock: { ttl: 30_000, renewal: 'automatic', part: 1 / 2 },
  /** A leader: a short ttl, so that a dead one is soon replaced, and more tries within it. */
  election: { ttl: 10_000, renewal: 'automatic', part: 1 / 3 },
  /** A user's or an agent's session: it lives for as long as it is used. */
  session: { ttl: 20 * 60_000, renewal: 'activity', part: 1 / 20 },
  /** Something put aside for somebody: it ends unless they ask for more. */
  reservation: { ttl: 60 * 60_000, renewal: 'explicit', part: 1 },
  /** The right to fill a cache: it just runs out. */
  cache: { ttl: 10 * 60_000, renewal: 'never', part: 1 },
} as const satisfies Record<string, Strategy>

export type StrategyName = keyof typeof STRATEGIES

export interface TimingOptions {
  /** `lock` if not given. */
  readonly strategy?: StrategyName | undefined
  /** How long it is held without a renewal. The strategy's if not given. */
  readonly ttl?: Duration | undefined
  /** How much longer nobody else can hold it; a renewal in that time recovers it. 0 if not given. */
  readonly grace?: Duration | undefined
  /** How long after one renewal the next is sent. For strategies that renew automatically. */
  readonly renewEvery?: Duration | undefined
  /** How long it may be held in all, counted from when it is first held. No limit if not given. */
  readonly maxHold?: Duration | undefined
}

/** How little a client trusts its clock: see `Timing`. */
export interface Caution {
  /** By how much, as a part, the store's clock may run faster than ours. */
  readonly drift: number
  /** An absolute margin in milliseconds; `undefined` for the default. */
  readonly margin: number | undefined
}

/**
 * The times of a lease, all in milliseconds.
 *
 * The store ends a lease no sooner than `ttl + grace` after it carried out the last renewal, on its
 * own clock. The holder counts from when it *sent* that renewal, which was earlier, on a clock that
 * may run slower than the store's by the part `drift`, and stops `margin` sooner. So it always
 * stops first, and offsets between clocks and slow answers do not matter.
 */
export interface Timing {
  readonly ttl: number
  readonly grace: number
  readonly maxHold: number
  readonly renewal: Renewal
  /** From one renewal to the next; `Infinity` where none is sent by itself. */
  readonly every: number
  readonly rate: number
  readonly margin: number
  /** For how long after a renewal was sent the holder believes that it holds. */
  readonly believed: number
  /** For how long after a renewal was sent nobody else can hold. */
  readonly kept: number
}

const MARGIN_MAX_MS = 50
const MARGIN_PART = 0.05

/** The timing that the options ask for. Refuses, naming the values, what could not work. */
export function timingOf(options: TimingOptions, caution: Caution, guarantees: Guarantees): Timing {
  const strategy = strategyOf(options.strategy)
  const maxHold =
    options.maxHold === undefined ? Infinity : milliseconds(options.maxHold, 'maxHold')
  const ttl = ttlOf(options, strategy, maxHold, guarantees)
  const grace = options.grace === undefined ? 0 : milliseconds(options.grace, 'grace')
  if (grace === Infinity) {
    throw invalid(`grace is infinite: give a finite one, or an infinite ttl to hold for ever`)
  }
  const rate = 1 - caution.drift
  const margin = caution.margin ?? Math.min(MARGIN_MAX_MS, ttl * MARGIN_PART)
  const believed = ttl * rate - margin
  if (!(believed > 0)) {
    throw invalid(
      `margin ${formatDuration(margin)} and drift ${caution.drift} leave nothing of ttl ${formatDuration(ttl)}: make the ttl longer or the margin shorter`,
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
      `maxHold is ${formatDuration(maxHold)}: the shortest that this store can keep is ${formatDuration(min)}`,
    )
  }
  if (options.ttl === undefined) return Math.min(Math.max(strategy.ttl, min), max, maxHold)
  const ttl = milliseconds(options.ttl, 'ttl')
  if (ttl < min) {
    throw invalid(
      `ttl is ${formatDuration(ttl)}: the shortest that this store can keep is ${formatDuration(min)}`,
    )
  }
  if (ttl > max && ttl < Infinity) {
    throw invalid(
      `ttl is ${formatDuration(ttl)}: the longest that this store can keep is ${formatDuration(max)}, or 'infinite'`,
    )
  }
  if (ttl > maxHold) {
    throw invalid(
      `ttl ${formatDuration(ttl)} is longer than maxHold ${formatDuration(maxHold)}: make the ttl at most as long`,
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
      `renewEvery is ${show(options.renewEvery)}, but strategy '${options.strategy}' is not renewed by itself: leave it out, or take the strategy 'lock'`,
    )
  }
  if (options.renewEvery === undefined) return ttl * strategy.part
  const every = milliseconds(options.renewEvery, 'renewEvery')
  if (every > 0 && every < believed) return every
  throw invalid(
    `renewEvery ${formatDuration(every)} must be more than 0 and less than ttl ${formatDuration(ttl)} less its safety margin (${formatDuration(believed)}): a third or a half of the ttl leaves time for retries`,
  )
}
