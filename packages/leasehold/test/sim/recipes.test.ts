import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runNode } from '../structure/commands.ts'
import { ROOT } from '../structure/source-files.ts'

/** A part of the runs of `npm run sim -- --recipe …`. */
const SEEDS = 25
/** Each takes a few seconds, and longer on a machine that is busy with something else. */
const TIMEOUT_MS = 600_000

it.each(['election', 'pool', 'registry', 'session', 'cache'])(
  'finds nothing wrong with the recipe %s in its worlds',
  async (recipe) => {
    const args = ['--recipe', recipe, '--seeds', String(SEEDS), '--json']
    const program = join(ROOT, 'sim/dist/main.js')
    const { code, stdout, stderr } = await runNode([program, ...args], ROOT, TIMEOUT_MS)
    expect(stderr).toBe('')
    expect(JSON.parse(stdout)).toMatchObject({ done: SEEDS, failed: [] })
    expect(code).toBe(0)
  },
  TIMEOUT_MS,
)
