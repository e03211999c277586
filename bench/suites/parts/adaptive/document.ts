import { format, percentile } from '../../../measure/rows.js'
import { average, bestOf, type Comparison, hasRatio, ratioOfFixed } from './compare.js'
import { type Cost, FIXED } from './cost.js'

export function table(comparisons: readonly Comparison[], single: number, usual: number): string {
  const head = [
    'workload',
    'best fixed ttl',
    'renewals and time blocked for each hold',
    'ttl it chose',
    'renewals and time blocked',
    'cost of adaptive',
    `of ${seconds(FIXED[single]!)} for all`,
    `of ${seconds(FIXED[usual]!)}`,
  ]
  const lines = comparisons.map((comparison) => lineOf(comparison, single, usual))
  return [head, head.map(() => '---'), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
}

function lineOf(comparison: Comparison, single: number, usual: number): string[] {
  const { workload, rounds } = comparison
  const ttls = rounds.flatMap((round) => round.ttls)
  const adaptive = average(rounds.map((round) => round.adaptive))
  return [
    `**${workload.name}**: ${workload.about}`,
    seconds(
      percentile(
        rounds.map(({ bestTtl }) => bestTtl),
        0.5,
      ),
    ),
    amounts(bestOf(comparison)),
    `${seconds(percentile(ttls, 0.1))} to ${seconds(percentile(ttls, 0.9))}`,
    amounts(adaptive),
    costOf(comparison),
    costOfFixed(comparison, single),
    costOfFixed(comparison, usual),
  ]
}

function costOf(comparison: Comparison): string {
  const { rounds } = comparison
  if (!hasRatio(comparison)) {
    return `${format(average(rounds.map((round) => round.adaptive)).cost)} a hold`
  }
  const ratios = rounds.map(({ adaptive, best }) => adaptive.cost / best.cost)
  const [low, middle, high] = [0, 0.5, 1].map((share) => percentile(ratios, share).toFixed(2))
  return `**${middle}×** (${low} to ${high})`
}

function costOfFixed(comparison: Comparison, at: number): string {
  if (!hasRatio(comparison)) return `${format(comparison.fixed[at]!.cost)} a hold`
  return `${ratioOfFixed(comparison, at).toFixed(2)}×`
}

function amounts({ renewals, blocked }: Cost): string {
  return `${format(renewals)} and ${format(blocked / 1000)} s`
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`
}
