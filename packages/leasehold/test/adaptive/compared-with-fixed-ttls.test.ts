import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runNode } from '../structure/commands.ts'
import { ROOT } from '../structure/source-files.ts'

/** A part of the seeds of `npm run bench -- adaptive`. */
const SEEDS = 5
const TIMEOUT_MS = 480_000
/** How much more it may cost than the best fixed ttl: in the median of the seeds, and at worst. */
const MEDIAN_MAX = 1.25
const WORST_MAX = 1.5

interface Row {
  readonly name: string
  readonly ours: number
  readonly spread: readonly [number, number]
}

describe('against the best fixed ttl, chosen with hindsight', () => {
  it(
    'costs little more on every workload, and less if the work changes',
    async () => {
      const program = join(ROOT, 'bench/dist/suites/parts/adaptive/ttl.js')
      const { code, stdout, stderr } = await runNode([program, String(SEEDS)], ROOT, TIMEOUT_MS)
      expect(stderr).toBe('')
      expect(code).toBe(0)
      const rows = JSON.parse(stdout) as Row[]
      const costs = rows.filter(({ name }) => name.endsWith(': cost'))
      expect(costs.length).toBe(7)
      expect(costs.filter(({ ours }) => ours > MEDIAN_MAX)).toEqual([])
      expect(costs.filter(({ spread }) => spread[1] > WORST_MAX)).toEqual([])
      const figure = (name: string) => rows.find((row) => row.name === name)!.ours
      expect(figure('adaptive ttl, changes abruptly: cost')).toBeLessThan(0.9)
      // Without deaths, hindsight never renews. A fixed ttl of 30 s renews four times.
      expect(figure('adaptive ttl, never dies: renewals')).toBeLessThan(2)
    },
    TIMEOUT_MS,
  )
})
