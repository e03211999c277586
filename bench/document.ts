import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { writeBlock } from './block.js'
import { chart } from './chart.js'
import { curves } from './curve.js'
import { headlineTable } from './headlines.js'
import type { Machine, Versions } from './machine.js'
import type { Row } from './rows.js'
import { SUITES } from './suites.js'
import { lossTables, markdownTable } from './table.js'

const PAGE = new URL('../../docs/benchmarks.md', import.meta.url)
const README = new URL('../../README.md', import.meta.url)
const PLOTS = new URL('../../docs/images/', import.meta.url)

interface Result {
  readonly machine: Machine
  readonly rows: readonly Row[]
}

/**
 * Writes the figures of the results that there are into the page, and the first of them into the
 * README; the prose of both stays as it is. Plots are drawn anew, so that none is older than its table.
 */
export function writeDocument(results: URL): void {
  const measured = resultsIn(results)
  const machines = [...measured.values()].map(({ machine }) => machine)
  const rows = [...measured.values()].flatMap((result) => result.rows)
  const parts = [...measured].flatMap(([suite, { machine, rows }]) => [
    `### ${suite}`,
    `${SUITES[suite]!.about} ${whenOf(machine)}`,
    ...plot(suite, rows, results),
    markdownTable(rows),
  ])
  writeBlock(PAGE, 'document, machine', machinesText(machines))
  writeBlock(PAGE, 'document, losses', lossTables(rows))
  writeBlock(PAGE, 'all', parts.join('\n\n'))
  writeBlock(README, 'all', `${readmeText(machines)}\n\n${headlineTable(rows)}`)
}

/** By suite, in their order. */
export function resultsIn(results: URL): Map<string, Result> {
  const found = Object.keys(SUITES).flatMap((suite): [string, Result][] => {
    const file = new URL(`${suite}.json`, results)
    return existsSync(file) ? [[suite, JSON.parse(readFileSync(file, 'utf8'))]] : []
  })
  return new Map(found)
}

function plot(suite: string, rows: readonly Row[], results: URL): string[] {
  const drawn = curves(suite, rows) ?? chart(suite, rows)
  if (drawn === undefined) return []
  mkdirSync(PLOTS, { recursive: true })
  for (const file of [new URL(`${suite}.svg`, results), new URL(`bench-${suite}.svg`, PLOTS)]) {
    writeFileSync(file, drawn)
  }
  return [`![${suite}, as a plot](images/bench-${suite}.svg)`]
}

/** Of each suite, because they need not have been run on one day. */
function whenOf({ on, commit, busy, load }: Machine): string {
  const others = busy === undefined ? '' : `, with ${busy} cores busy with other things before`
  const after = load === undefined ? '' : `, with a load of ${load} at the end, its own included`
  return `Measured ${on} at commit ${commit}${others}${after}.`
}

/** The machine and what is on it, once for all; each of them where there were several. */
export function machinesText(machines: readonly Machine[]): string {
  const where = machines.map(({ processors, memory, system, node, tmpfs }) => {
    const disk = tmpfs ? ', and what is said to be on the disk is in memory (tmpfs)' : ''
    return `${processors}, ${memory}, ${system}, Node ${node}${disk}`
  })
  const lines = [`- Machine: ${distinct(where)}.`]
  const add = (what: string, of: (machine: Machine) => Versions | undefined) => {
    const known = machines.map(of).filter((versions) => versions !== undefined)
    if (known.length > 0) lines.push(`- ${what}: ${distinct(known.map(versionsText))}.`)
    const missing = machines.length - known.length
    if (missing > 0) lines.push(`- ${what}: not told by ${missing} of ${machines.length} suites.`)
  }
  add('Engines', ({ engines }) => engines)
  add('Libraries', ({ peers }) => peers)
  return lines.join('\n')
}

/** Above the table: the least that has to be known of the machine. */
function readmeText(machines: readonly Machine[]): string {
  const where = machines.map(({ processors, memory, tmpfs }) => {
    const disk = tmpfs ? ', with the disk in memory' : ''
    return `${processors}, ${memory}${disk}`
  })
  return `Here on ${distinct(where)}, which client and server share:`
}

function versionsText(versions: Versions): string {
  return Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ')
}

function distinct(texts: readonly string[]): string {
  return [...new Set(texts)].join('; or ')
}
