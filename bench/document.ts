import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { writeBlock } from './block.js'
import { headlineTable } from './headlines.js'
import type { Machine } from './machine.js'
import type { Row } from './rows.js'
import { SUITES } from './suites.js'
import { markdownTable } from './table.js'

const PAGE = new URL('../../docs/benchmarks.md', import.meta.url)
const README = new URL('../../README.md', import.meta.url)
const PLOTS = new URL('../../docs/images/', import.meta.url)

interface Result {
  readonly machine: Machine
  readonly rows: readonly Row[]
}

/**
 * Writes the figures of the results that there are into the page, and the first of them into the
 * README; the prose of both stays as it is.
 */
export function writeDocument(results: URL): void {
  const measured = resultsIn(results)
  const parts = [...measured].flatMap(([suite, { machine, rows }]) => {
    const { about } = SUITES[suite]!
    const { on, commit, node, processors, memory, system, load } = machine
    const where = `${on}, commit ${commit}, Node ${node}, ${processors}, ${memory}, ${system}, load ${load}`
    return [
      `### ${suite}`,
      `${about} Measured ${where}.`,
      ...plot(suite, results),
      markdownTable(rows),
    ]
  })
  writeBlock(PAGE, 'all', parts.join('\n\n'))
  writeBlock(README, 'all', headlineTable([...measured.values()].flatMap(({ rows }) => rows)))
}

/** By suite, in their order. */
export function resultsIn(results: URL): Map<string, Result> {
  const found = Object.keys(SUITES).flatMap((suite): [string, Result][] => {
    const file = new URL(`${suite}.json`, results)
    return existsSync(file) ? [[suite, JSON.parse(readFileSync(file, 'utf8'))]] : []
  })
  return new Map(found)
}

function plot(suite: string, results: URL): string[] {
  const file = new URL(`${suite}.svg`, results)
  if (!existsSync(file)) return []
  mkdirSync(PLOTS, { recursive: true })
  writeFileSync(new URL(`bench-${suite}.svg`, PLOTS), readFileSync(file))
  return [`![${suite}, as a plot](images/bench-${suite}.svg)`]
}
