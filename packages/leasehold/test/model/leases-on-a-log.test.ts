import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { describeWith, findProgram } from '../engines/engine.ts'
import { ROOT } from '../structure/source-files.ts'

const MODEL = join(ROOT, 'model/leases-on-a-log.pml')
const SPIN = {
  name: 'spin with gcc',
  program: findProgram('gcc') && findProgram('spin'),
  args: () => [],
  ready: /./,
}

/** What a run goes through: how many entries, which faults. Each takes seconds and one gigabyte. */
const CONFIGURATIONS = {
  clocks: ['ENTRIES=3', 'CRASHES=1', 'RESENDS=1'],
  releases: ['ENTRIES=4', 'REQUESTS=2', 'CRASHES=0', 'RESENDS=0'],
  members: ['NO_TIME', 'ENTRIES=4', 'CRASHES=1', 'RESENDS=2', 'EXPELS=1', 'HOLDERS=1', 'SLOTS=3'],
} as const
type Configuration = keyof typeof CONFIGURATIONS

const TWO_BELIEVERS = /holds\[0\]!=0/
const GRANTED_TWICE = /grantedAt/

/** Each condition that the protocol needs, and which check fails without it. */
const REMOVED: readonly [condition: string, where: Configuration, broken: RegExp][] = [
  ['NO_AS_OF', 'clocks', TWO_BELIEVERS],
  ['NO_MARGIN', 'clocks', TWO_BELIEVERS],
  ['COUNT_FROM_REPLY', 'clocks', TWO_BELIEVERS],
  ['COUNT_FROM_STAMP', 'clocks', TWO_BELIEVERS],
  ['NO_FULL_TTL_AFTER_JOINING', 'clocks', TWO_BELIEVERS],
  ['ANSWER_BEFORE_APPLY', 'clocks', TWO_BELIEVERS],
  ['RENEW_BEFORE_APPLY', 'clocks', TWO_BELIEVERS],
  ['RENEW_THE_DEAD', 'clocks', TWO_BELIEVERS],
  ['RELEASE_ANY', 'releases', TWO_BELIEVERS],
  ['NO_SEQUENCE', 'clocks', GRANTED_TWICE],
  ['LATE_ENTRIES', 'members', GRANTED_TWICE],
  ['JOIN_AGAIN', 'members', GRANTED_TWICE],
]

/** Goes through every state, or up to the first violation, and answers with what spin reports. */
async function check(configuration: Configuration, ...switches: string[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-model-'))
  const run = async (program: string, ...args: string[]) =>
    (await promisify(execFile)(program, args, { cwd: folder, timeout: 300_000 })).stdout
  try {
    const defined = [...CONFIGURATIONS[configuration], ...switches].map((each) => `-D${each}`)
    await run('spin', ...defined, '-a', MODEL)
    await run('gcc', '-O1', '-w', '-DSAFETY', '-DMEMLIM=4000', '-o', 'check', 'pan.c')
    return await run('./check', '-m10000', '-w24')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describeWith(SPIN, 'the protocol of leases on a log, in every schedule', () => {
  it.each(Object.keys(CONFIGURATIONS) as Configuration[])(
    'has one holder at a time and one grant per request: %s',
    async (configuration) => {
      const report = await check(configuration)
      expect(report).toMatch(/errors: 0\n/)
      expect(report).not.toMatch(/max search depth too small|out of memory|MEMLIM/)
    },
    300_000,
  )

  it('lets a contender take the key of a holder that has vanished', async () => {
    expect(await check('clocks', 'WITNESS')).toMatch(/assertion violated/)
  }, 300_000)

  describe('needs each of its conditions: without it there is a trace that breaks it', () => {
    it.each(REMOVED)(
      '%s in %s',
      async (condition, where, broken) => {
        expect(await check(where, condition)).toMatch(
          new RegExp(`assertion violated.*${broken.source}`),
        )
      },
      300_000,
    )
  })
})
