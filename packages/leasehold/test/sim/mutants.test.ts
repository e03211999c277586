import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runNode } from '../structure/commands.ts'
import { ROOT } from '../structure/source-files.ts'

/** This plants bugs that show within this many seeds; `npm run sim -- --mutants` plants all. */
const SEEDS = 400
/** It takes two minutes of processor time, and longer on a machine that is busy with something else. */
const TIMEOUT_MS = 600_000

it(
  'notices each planted bug that shows soon',
  async () => {
    const args = ['--mutants', '--within', String(SEEDS)]
    const program = join(ROOT, 'sim/dist/main.js')
    const { code, stdout, stderr } = await runNode([program, ...args], ROOT, TIMEOUT_MS)
    expect(stderr).toBe('')
    expect(stdout.split('\n').filter((line) => line.includes('NOT CAUGHT'))).toEqual([])
    expect(code).toBe(0)
  },
  TIMEOUT_MS,
)
