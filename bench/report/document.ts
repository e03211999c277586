import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Machine, Versions } from '../machine/machine.js'
import type { Row } from '../measure/rows.js'
import { SUITES } from '../suites/index.js'
import { growthCurves } from './growth-curves.js'
import { HEADLINES, headlineTable } from './headlines.js'
import { writeMarkedBlock } from './marked-block.js'
import { ratioChart } from './ratio-chart.js'
import { lossTables, markdownTable } from './tables.js'

const PAGE = new URL('../../../docs/benchmarks.md', import.meta.url)
const README = new URL('../../../README.md', import.meta.url)
const PLOTS = new URL('../../../docs/images/', import.meta.url)

interface Result {
  readonly machine: Machine
  readonly rows: readonly Row[]
}

/**
 * Writes the stored results into the benchmarks page, and the headlines into the README. The prose of
 * both stays. Every plot is drawn again, so that none is older than its table.
 */
export function writeDocument(results: URL): void {
  const measured = resultsIn(results)
  const machines = [...measured.values()].map(({ machine }) => machine)
  const rows = [...measured.values()].flatMap((result) => result.rows)
  const parts = [...measured].flatMap(([suite, { machine, rows }]) => [
    `### ${suite}`,
    `${SUITES[suite]!.about} ${whenOf(machine)}`,
    ...(writePlot(suite, rows) ? [`![${suite}, as a plot](images/bench-${suite}.svg)`] : []),
    markdownTable(rows),
  ])
  writeMarkedBlock(PAGE, 'document, machine', machinesText(machines))
  writeMarkedBlock(PAGE, 'document, losses', lossTables(rows))
  writeMarkedBlock(PAGE, 'all', parts.join('\n\n'))
  writeMarkedBlock(README, 'all', `${readmeText(measured)}\n\n${headlineTable(rows)}`)
}

/** The stored results, by suite, in the order of the suites. */
export function resultsIn(results: URL): Map<string, Result> {
  const found = Object.keys(SUITES).flatMap((suite): [string, Result][] => {
    const file = new URL(`${suite}.json`, results)
    return existsSync(file) ? [[suite, JSON.parse(readFileSync(file, 'utf8'))]] : []
  })
  return new Map(found)
}

/** Writes the plot of a suite. Returns false if there is nothing to draw. */
export function writePlot(suite: string, rows: readonly Row[]): boolean {
  const drawn = growthCurves(suite, rows) ?? ratioChart(suite, rows)
  if (drawn === undefined) return false
  mkdirSync(PLOTS, { recursive: true })
  writeFileSync(new URL(`bench-${suite}.svg`, PLOTS), drawn)
  return true
}

/** Each suite has its own date and commit: suites may run on different days. */
function whenOf({ on, commit, busy, load }: Machine): string {
  const others = busy === undefined ? '' : `; other programs used ${busy} cores before the run`
  const after = load === undefined ? '' : `; the load at the end, its own included, was ${load}`
  return `Measured on ${on} at commit ${commit}${others}${after}.`
}

/** The machine and its software, once for all suites; every machine if there were several. */
export function machinesText(machines: readonly Machine[]): string {
  const where = machines.map(({ processors, memory, system, node, tmpfs }) => {
    const disk = tmpfs ? '; its "disk" is memory (tmpfs)' : ''
    return `${processors}, ${memory}, ${system}, Node ${node}${disk}`
  })
  const lines = [`- Machine: ${distinct(where)}.`]
  const add = (what: string, of: (machine: Machine) => Versions | undefined) => {
    const known = machines.map(of).filter((versions) => versions !== undefined)
    if (known.length > 0) lines.push(`- ${what}: ${distinct(known.map(versionsText))}.`)
    const missing = machines.length - known.length
    if (missing > 0)
      lines.push(`- ${what}: not recorded by ${missing} of ${machines.length} suites.`)
  }
  add('Engines', ({ engines }) => engines)
  add('Libraries', ({ peers }) => peers)
  return lines.join('\n')
}

/** The sentence above the table of the README. */
function readmeText(measured: ReadonlyMap<string, Result>): string {
  const machines = HEADLINES.flatMap(({ suite }) => measured.get(suite)?.machine ?? [])
  const where = distinct(machines.map(({ processors }) => processors))
  return `Client and server share ${where}; above 1× we are better:`
}

function versionsText(versions: Versions): string {
  return Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ')
}

function distinct(texts: readonly string[]): string {
  return [...new Set(texts)].join('; ')
}
