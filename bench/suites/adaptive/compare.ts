import { type Cost, FIXED, simulateAdaptive, simulateFixed, worksOf } from './cost.js'
import type { Workload } from './workloads.js'

/** One workload, played with each fixed ttl and with the adaptive one, once for each seed. */
export interface Comparison {
  readonly workload: Workload
  /** What each of `FIXED` costs, on average over the seeds. */
  readonly fixed: readonly Cost[]
  readonly rounds: readonly Round[]
}

export interface Round {
  /** The fixed ttl that was the best for this very run, which only hindsight can tell. */
  readonly best: Cost
  readonly bestTtl: number
  readonly adaptive: Cost
  readonly ttls: readonly number[]
}

/** None of these was looked at while the defaults were chosen: those were the seeds from 1 on. */
export const FIRST_SEED = 1001

export function compare(workload: Workload, seeds: number, holds: number): Comparison {
  const rounds: Round[] = []
  const bills: Cost[][] = []
  for (let seed = FIRST_SEED; seed < FIRST_SEED + seeds; seed++) {
    const works = worksOf(workload, seed, holds)
    const fixed = FIXED.map((ttl) => simulateFixed(works, ttl))
    const at = cheapest(fixed.map(({ cost }) => cost))
    const { ttls, ...adaptive } = simulateAdaptive(works)
    rounds.push({ best: fixed[at]!, bestTtl: FIXED[at]!, adaptive, ttls })
    bills.push(fixed)
  }
  const fixed = FIXED.map((_, at) => average(bills.map((fixed) => fixed[at]!)))
  return { workload, fixed, rounds }
}

export function average(bills: readonly Cost[]): Cost {
  const of = (field: keyof Cost) => bills.reduce((sum, bill) => sum + bill[field], 0) / bills.length
  return { renewals: of('renewals'), blocked: of('blocked'), cost: of('cost') }
}

/** What the best fixed ttls cost, on average over the seeds. */
export function bestOf({ rounds }: Comparison): Cost {
  return average(rounds.map(({ best }) => best))
}

/** How many times as much a fixed ttl costs as those that hindsight would have chosen. */
export function ratioOfFixed(comparison: Comparison, at: number): number {
  return comparison.fixed[at]!.cost / bestOf(comparison).cost
}

/** Where hindsight pays nothing, nothing is a multiple of it. */
export function hasRatio({ rounds }: Comparison): boolean {
  return rounds.every(({ best, adaptive }) => best.cost > adaptive.cost / 100)
}

/** Which of `FIXED` is the best if one must serve all workloads, each counting the same. */
export function bestSingle(comparisons: readonly Comparison[]): number {
  const compared = comparisons.filter(hasRatio)
  return cheapest(
    FIXED.map((_, at) =>
      compared.reduce((sum, comparison) => sum + Math.log(ratioOfFixed(comparison, at)), 0),
    ),
  )
}

function cheapest(costs: readonly number[]): number {
  return costs.indexOf(Math.min(...costs))
}
