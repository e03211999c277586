/**
 * The cost of the adaptive ttl against fixed ones, in simulation. All randomness comes from seeds,
 * so each run gives the same figures. Writes the chart and the table of docs/adaptive-ttl.md. With
 * an argument it runs only that many seeds, prints the rows and writes nothing.
 */
import { writeFileSync } from 'node:fs'
import { atMost, type Row, row } from '../../../measure/rows.js'
import { writeMarkedBlock } from '../../../report/marked-block.js'
import { chart } from './chart.js'
import {
  bestSingle,
  type Comparison,
  compare,
  FIRST_SEED,
  hasRatio,
  ratioOfFixed,
} from './compare.js'
import { FIXED } from './cost.js'
import { table } from './document.js'
import { WORKLOADS } from './workloads.js'

const SEEDS = 20
const HOLDS = 1500
/** The default ttl of a lock. */
const USUAL = 30_000

const only = process.argv[2]
const comparisons = WORKLOADS.map((workload) => compare(workload, Number(only ?? SEEDS), HOLDS))
const single = bestSingle(comparisons)
if (only === undefined && process.env['BENCH_ROUNDS'] === undefined) {
  const docs = new URL('../../../../../docs/', import.meta.url)
  writeFileSync(new URL('adaptive-ttl.svg', docs), chart(comparisons, single))
  const note = `${SEEDS} seeds (from ${FIRST_SEED} on; none was used to choose the defaults) of ${HOLDS.toLocaleString('en')} holds each. A renewal costs 1, and a second of blocked time costs 10.`
  const picture = '![What holds cost with fixed ttls and with the adaptive one](adaptive-ttl.svg)'
  const block = [note, picture, table(comparisons, single, nearest(USUAL))].join('\n\n')
  writeMarkedBlock(new URL('adaptive-ttl.md', docs), 'adaptive', block)
}
console.log(JSON.stringify(comparisons.flatMap(rowsOf)))

function rowsOf(comparison: Comparison): Row[] {
  const { workload, rounds } = comparison
  const name = `adaptive ttl, ${workload.name}`
  const renewals = rounds.map(({ adaptive }) => adaptive.renewals)
  const blocked = rounds.map(({ adaptive }) => adaptive.blocked / 1000)
  return [
    ...(hasRatio(comparison) ? ratiosOf(comparison, name) : []),
    row(`${name}: renewals`, 'a hold', renewals),
    row(`${name}: time blocked`, 's a hold', blocked),
  ]
}

function ratiosOf(comparison: Comparison, name: string): Row[] {
  const ratios = comparison.rounds.map(({ adaptive, best }) => adaptive.cost / best.cost)
  const fixed = `the best single fixed ttl, ${Math.round(FIXED[single]! / 1000)} s`
  return [
    row(`${name}: cost`, '× the best fixed', ratios, atMost(1.2)),
    row(`${name}: cost of ${fixed}`, '× the best fixed', [ratioOfFixed(comparison, single)]),
  ]
}

function nearest(ttl: number): number {
  const distances = FIXED.map((fixed) => Math.abs(Math.log(fixed / ttl)))
  return distances.indexOf(Math.min(...distances))
}
