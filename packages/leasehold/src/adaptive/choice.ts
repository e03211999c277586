import { type ExpectedCost, expectedCost } from './cost.ts'
import type { Experience } from './experience.ts'
import { type AdaptiveSettings, wholeSteps } from './settings.ts'
import { BUCKETS, borderOf, bucketOf } from './sketch.ts'
import { spokenMore, spokenNumber, spokenTime } from './words.ts'

export interface TtlChoice {
  readonly ttl: number
  readonly renewEvery: number
  /** In words and numbers, for people. */
  readonly why: string
  /** Whether it rests on what was seen, or is the initial ttl because that was too little. */
  readonly learnt: boolean
  /** How many holds it rests on. */
  readonly holds: number
  /** What a hold is expected to cost with this ttl; nothing is expected before it has learnt. */
  readonly expected: ExpectedCost | undefined
}

/** What the caller expects of deaths weighs as much as so many holds. */
const PRIOR_HOLDS = 50

/** The ttl that would have cost least for what was seen, within the bounds. */
export function choiceOf(
  experience: Experience,
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
 * The ttls that are compared: the bounds, and those between whose first renewal comes just when the
 * holds of a bucket are over, rounded up as a person would. They are the same few at all times, so
 * that holds share their leases.
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

/** How many die in one millisecond of holding. One death alone is not taken for a plague. */
function deathRateOf({ died, held }: Experience, { deathShare }: AdaptiveSettings): number {
  return (died + deathShare * PRIOR_HOLDS) / ((held.weight + PRIOR_HOLDS) * held.mean)
}

/** The shortest ttl to choose: twice the longest one that was outlived, for as long as that counts. */
function floorOf({ outlived }: Experience, { min, max, step }: AdaptiveSettings): number {
  return Math.min(Math.max(min, wholeSteps(2 * outlived.quantile(1), step)), max)
}

function whyFloor({ outlived }: Experience): string {
  if (outlived.weight === 0) return ''
  return `; it is not shorter because holders outlived a ttl of ${spokenTime(outlived.quantile(1))}`
}

function whyInitial(
  ttl: number,
  holds: number,
  { kind, enough }: AdaptiveSettings,
  damage: string | undefined,
): string {
  const lost = damage === undefined ? '' : `; what was kept could not be used: ${damage}`
  return `only ${holds} of the ${enough} holds of kind '${kind}' that are needed were seen, so the ttl is the initial ${spokenTime(ttl)}${lost}`
}

function whyBest(
  best: ExpectedCost,
  others: readonly ExpectedCost[],
  { held }: Experience,
  { kind, min, max }: AdaptiveSettings,
  deathRate: number,
): string {
  const compared = others
    .filter(() => best.cost > 0)
    .map(({ ttl, cost }) => `${spokenTime(ttl)} would cost ${spokenMore(cost / best.cost - 1)}`)
  const parts = [
    `half of the last ${spokenNumber(held.weight)} holds of kind '${kind}' lasted at most ${spokenTime(held.quantile(0.5))} and 95 % at most ${spokenTime(held.quantile(0.95))}`,
    deathRate > 0 && `a holder dies about once in ${spokenTime(1 / deathRate)} of holding`,
    `with a ttl of ${spokenTime(best.ttl)} a hold costs ${spokenNumber(best.renewals)} renewals and ${spokenTime(best.blocked)} of blocked time on average`,
    compared.length > 0 && compared.join(', '),
    best.ttl === min && 'it is the shortest allowed',
    best.ttl === max && 'it is the longest allowed',
  ]
  return parts.filter((part) => part !== false).join('; ')
}
