/**
 * `npm run bench -- [suite] [measurement]`: measures, prints a table, and writes JSON rows and a plot
 * to bench/results/. Without a suite all are run, and docs/benchmarks.md is written from the results.
 * Each measurement runs in a process of its own, so that none inherits another's memory.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chart } from './chart.js'
import { writeDocument } from './document.js'
import { machine } from './machine.js'
import type { Row } from './rows.js'
import { SUITES } from './suites.js'
import { textTable } from './table.js'

const RESULTS = new URL('../results/', import.meta.url)

const [wanted, only] = process.argv.slice(2)
if (wanted === '--help' || (wanted !== undefined && wanted !== 'document' && !SUITES[wanted])) {
  const names = Object.keys(SUITES).join(', ')
  const say = wanted === '--help' ? console.log : console.error
  say(
    `usage: npm run bench -- [suite] [measurement]\n\nSuites: ${names}. All, where none is named.`,
  )
  say('With "document": writes docs/benchmarks.md from the results that there are.')
  process.exit(wanted === '--help' ? 0 : 2)
}

const suites = wanted === 'document' ? [] : wanted ? [wanted] : Object.keys(SUITES)
for (const suite of suites) {
  const rows: Row[] = []
  const measurements = only ? [only] : SUITES[suite]!.measurements
  for (const [at, measurement] of measurements.entries()) {
    process.stderr.write(
      `${suite}: measuring ${measurement}, ${at + 1} of ${measurements.length}\n`,
    )
    rows.push(...measure(suite, measurement))
  }
  console.log(textTable(rows))
  if (!only) write(suite, rows)
}
if (wanted === undefined || wanted === 'document') writeDocument(RESULTS)

function measure(suite: string, measurement: string): Row[] {
  const file = fileURLToPath(new URL(`./${suite}/${measurement}.js`, import.meta.url))
  const child = spawnSync(process.execPath, ['--expose-gc', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    timeout: 15 * 60_000,
  })
  if (child.status !== 0) throw new Error(`${measurement} failed (${child.signal ?? child.status})`)
  const rows: Row[] = JSON.parse(child.stdout.trim().split('\n').at(-1)!)
  return rows.map((row) => ({ suite, ...row }))
}

function write(suite: string, rows: readonly Row[]): void {
  mkdirSync(RESULTS, { recursive: true })
  const results = { machine: machine(), rows }
  writeFileSync(new URL(`${suite}.json`, RESULTS), `${JSON.stringify(results, undefined, 2)}\n`)
  const plot = chart(suite, rows)
  if (plot) writeFileSync(new URL(`${suite}.svg`, RESULTS), plot)
}
