import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { writeBlock } from './block.js'
import type { Machine } from './machine.js'
import type { Row } from './rows.js'
import { SUITES } from './suites.js'
import { markdownTable } from './table.js'

const PAGE = new URL('../../docs/benchmarks.md', import.meta.url)
const PLOTS = new URL('../../docs/images/', import.meta.url)

/** Writes the figures of the results that there are into the page; its prose stays as it is. */
export function writeDocument(results: URL): void {
  const parts = Object.entries(SUITES).flatMap(([suite, { about }]) => {
    const file = new URL(`${suite}.json`, results)
    if (!existsSync(file)) return []
    const { machine, rows }: { machine: Machine; rows: Row[] } = JSON.parse(
      readFileSync(file, 'utf8'),
    )
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
}

function plot(suite: string, results: URL): string[] {
  const file = new URL(`${suite}.svg`, results)
  if (!existsSync(file)) return []
  mkdirSync(PLOTS, { recursive: true })
  writeFileSync(new URL(`bench-${suite}.svg`, PLOTS), readFileSync(file))
  return [`![${suite}, as a plot](images/bench-${suite}.svg)`]
}
