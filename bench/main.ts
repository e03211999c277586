/**
 * `npm run bench -- [suite] [measurement] [--rounds n]`: measures, prints a table, and writes JSON rows
 * and a plot to bench/results/. Without a suite all are run, and docs/benchmarks.md is written from the
 * results. Each measurement runs in a process of its own, so that none inherits another's memory; one
 * that fails is told of at the end, and does not keep the others from being run.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chart } from './chart.js'
import { curves } from './curve.js'
import { writeDocument } from './document.js'
import { machine } from './machine.js'
import type { Row } from './rows.js'
import { SUITES } from './suites.js'
import { textTable } from './table.js'

const RESULTS = new URL('../results/', import.meta.url)
/** A suite is to be done in eight minutes; this is for a machine that is busy. */
const MEASUREMENT_MS = 15 * 60_000

const { wanted, only, rounds } = readArguments()
if (rounds !== undefined) process.env['BENCH_ROUNDS'] = rounds
const failures: string[] = []
const suites = wanted === 'document' ? [] : wanted ? [wanted] : Object.keys(SUITES)
for (const suite of suites) {
  const rows: Row[] = []
  const began = performance.now()
  const measurements = only ? [only] : SUITES[suite]!.measurements
  for (const [at, measurement] of measurements.entries()) {
    process.stderr.write(
      `${suite}: measuring ${measurement}, ${at + 1} of ${measurements.length}\n`,
    )
    rows.push(...measure(suite, measurement))
  }
  console.log(`${textTable(rows)}\n`)
  process.stderr.write(`${suite}: took ${Math.round((performance.now() - began) / 1000)} s\n`)
  // What was measured in part, or in haste, is for the eye only.
  if (!only && rounds === undefined && rows.length > 0) write(suite, rows)
}
if ((wanted === undefined && rounds === undefined) || wanted === 'document') writeDocument(RESULTS)
for (const failure of failures) console.error(`FAILED: ${failure}`)
process.exitCode = failures.length > 0 ? 1 : 0

function readArguments(): { wanted?: string; only?: string; rounds?: string } {
  const options = { rounds: { type: 'string' }, help: { type: 'boolean' } } as const
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  const [wanted, only] = positionals
  const isKnown = wanted === undefined || wanted === 'document' || SUITES[wanted] !== undefined
  if (values.help || !isKnown) {
    const say = values.help ? console.log : console.error
    const names = Object.keys(SUITES).join(', ')
    say('usage: npm run bench -- [suite] [measurement] [--rounds n]\n')
    say(`Suites: ${names}. All, where none is named.`)
    say('With "document": writes docs/benchmarks.md from the results that there are.')
    say('With --rounds: so many rounds instead of five or more, and nothing is written.')
    process.exit(values.help ? 0 : 2)
  }
  const { rounds } = values
  return {
    ...(wanted !== undefined && { wanted }),
    ...(only !== undefined && { only }),
    ...(rounds !== undefined && { rounds }),
  }
}

function measure(suite: string, measurement: string): Row[] {
  const file = fileURLToPath(new URL(`./${suite}/${measurement}.js`, import.meta.url))
  const child = spawnSync(process.execPath, ['--expose-gc', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    timeout: MEASUREMENT_MS,
    maxBuffer: 64 * 1024 * 1024,
  })
  if (child.status !== 0) {
    failures.push(`${suite} ${measurement} (${child.signal ?? child.status})`)
    return []
  }
  const rows: Row[] = JSON.parse(child.stdout.trim().split('\n').at(-1)!)
  return rows.map((row) => ({ suite, ...row }))
}

function write(suite: string, rows: readonly Row[]): void {
  mkdirSync(RESULTS, { recursive: true })
  const results = { machine: machine(), rows }
  writeFileSync(new URL(`${suite}.json`, RESULTS), `${JSON.stringify(results, undefined, 2)}\n`)
  const plot = curves(suite, rows) ?? chart(suite, rows)
  if (plot) writeFileSync(new URL(`${suite}.svg`, RESULTS), plot)
}
