import { type ExpectedCost, expectedCost } from './cost.ts'
import type { HoldStatistics } from './hold-history.ts'
import { formatMore, formatNumber, formatTime } from './number-format.ts'
import { type AdaptiveSettings, wholeSteps } from './settings.ts'
import { BUCKETS, borderOf, bucketOf } from './sketch.ts'

export interface TtlChoice {
  readonly ttl: number
  readonly renewEvery: number
  /** An explanation in words and numbers, for people. */
  readonly why: string
  /** Whether the ttl was learnt, or is the initial ttl because too few holds were observed. */
  readonly learnt: boolean
  /** How many holds it is based on. */
  readonly holds: number
  /** The expected cost of a hold with this ttl; `undefined` before anything was learnt. */
  readonly expected: ExpectedCost | undefined
}

/** The expected share of deaths has the weight of this many holds. */
const PRIOR_HOLDS = 50

/** The ttl within the bounds that would have had the lowest cost for the observed holds. */
export function choiceOf(
  experience: HoldStatistics,
  settings: AdaptiveSettings,
  damage: string | undefined,
): TtlChoice {
  const { held } = experience
  const holds = held.weight
  const floor = floorOf(experience, settings)
  const choice = (ttl: number, why: string, expected?: ExpectedCost): TtlChoice => ({
    ttl,
    renewEvery: ttl * settings.part,
    why: why + (ttl === floor ? whyFloor(experience) : ''),
    learnt: expected !== undefined,
    holds,
    expected,
  })
  if (holds < settings.enough) {
    const ttl = Math.max(settings.initial, floor)
    return choice(ttl, whyInitial(ttl, holds, settings, damage))
  }
  const deathRate = deathRateOf(experience, settings)
  const bars = held.bars
  const costOf = (ttl: number) => expectedCost(ttl, bars, deathRate, settings)
  const best = candidates(settings, floor)
    .map(costOf)
    .reduce((best, next) => (next.cost < best.cost ? next : best))
  const others = [best.ttl / 2, best.ttl * 2]
    .filter((ttl) => ttl >= floor && ttl <= settings.max)
    .map(costOf)
  return choice(best.ttl, whyBest(best, others, experience, settings, deathRate), best)
}

/**
 * The ttls to compare: the bounds, and those in between whose first renewal comes just after the
 * holds of a bucket have ended, rounded up as a person would. They are always the same few, so that
 * holds can share leases.
 */
function candidates({ max, step, part }: AdaptiveSettings, floor: number): number[] {
  const ttls = [floor]
  for (let bucket = bucketOf(floor * part); bucket < BUCKETS; bucket++) {
    const ttl = wholeSteps(twoDigits(borderOf(bucket) / part), step)
    if (ttl >= max) break
    if (ttl > floor) ttls.push(ttl)
  }
  ttls.push(max)
  return ttls
}

function twoDigits(ms: number): number {
  return wholeSteps(ms, 10 ** (Math.floor(Math.log10(ms)) - 1))
}

/** Deaths per millisecond of holding. A single death does not count much. */
function deathRateOf({ died, held }: HoldStatistics, { deathShare }: AdaptiveSettings): number {
  return (died + deathShare * PRIOR_HOLDS) / ((held.weight + PRIOR_HOLDS) * held.mean)
}

/** The shortest ttl to choose: twice the longest one that was outlived, until that is forgotten. */
function floorOf({ outlived }: HoldStatistics, { min, max, step }: AdaptiveSettings): number {
  return Math.min(Math.max(min, wholeSteps(2 * outlived.quantile(1), step)), max)
}

function whyFloor({ outlived }: HoldStatistics): string {
  if (outlived.weight === 0) return ''
  return `; it is not shorter because holders outlived a ttl of ${formatTime(outlived.quantile(1))}`
}

function whyInitial(
  ttl: number,
  holds: number,
  { kind, enough }: AdaptiveSettings,
  damage: string | undefined,
): string {
  const lost = damage === undefined ? '' : `; the stored history could not be used: ${damage}`
  return `only ${holds} of the ${enough} holds of kind '${kind}' that are needed were seen, so the ttl is the initial ${formatTime(ttl)}${lost}`
}

function whyBest(
  best: ExpectedCost,
  others: readonly ExpectedCost[],
  { held }: HoldStatistics,
  { kind, min, max }: AdaptiveSettings,
  deathRate: number,
): string {
  const compared = others
    .filter(() => best.cost > 0)
    .map(({ ttl, cost }) => `${formatTime(ttl)} would cost ${formatMore(cost / best.cost - 1)}`)
  const parts = [
    `half of the last ${formatNumber(held.weight)} holds of kind '${kind}' lasted at most ${formatTime(held.quantile(0.5))} and 95 % at most ${formatTime(held.quantile(0.95))}`,
    deathRate > 0 && `a holder dies about once in ${formatTime(1 / deathRate)} of holding`,
    `with a ttl of ${formatTime(best.ttl)} a hold costs ${formatNumber(best.renewals)} renewals and ${formatTime(best.blocked)} of blocked time on average`,
    compared.length > 0 && compared.join(', '),
    best.ttl === min && 'it is the shortest allowed',
    best.ttl === max && 'it is the longest allowed',
  ]
  return parts.filter((part) => part !== false).join('; ')
}
