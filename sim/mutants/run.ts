import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KNOWN_BUGS } from './known-bugs.js'
import { LIKELY_BUGS } from './likely-bugs.js'
import type { Mutant } from './mutant.js'
import { bundle } from './plant.js'
import { IN_RECIPES } from './recipes.js'
import { REPLICA } from './replica.js'
import { STREAM } from './stream.js'
import { isCaught } from './test-run.js'
import { WHOLE_PORT } from './whole-port.js'

/** A planted bug must be caught in this many seeds; the run continues until then. */
const SEEDS = 20_000
const ENOUGH = 5
/** Worlds of recipes are longer and busier, so fewer of them must catch a bug. */
const RECIPE_SEEDS = 200

interface Caught {
  readonly done: number
  readonly failed: readonly {
    readonly seed: number
    readonly checkers: readonly string[]
    readonly message?: string
  }[]
}

/** The number of seeds for a copy without a bug. */
const COPY_SEEDS = 20

/** The number of parallel runs. */
const BESIDE = 2

export interface MutantOptions {
  /** Only bugs whose name contains this. */
  readonly only?: string | undefined
  /** Only bugs that are known to be caught within this many seeds, and they must be. */
  readonly within?: number | undefined
  /** Only bugs in the replica. */
  readonly replicas?: boolean
}

/**
 * Plants each bug in a copy of the build, runs worlds with it, and reports which checker noticed. A
 * bug that worlds do not show is planted in the sources, and the test that it names must fail.
 */
export async function runMutants({ only, within, replicas }: MutantOptions): Promise<number> {
  const mutants = [
    ...KNOWN_BUGS,
    ...LIKELY_BUGS,
    ...WHOLE_PORT,
    ...STREAM,
    ...IN_RECIPES,
    ...REPLICA,
  ]
    .filter(({ name }) => only === undefined || name.includes(only))
    .filter(({ rare, test }) => within === undefined || !(rare || test))
    .filter((mutant) => !replicas || mutant.replicas)
  const folder = await mkdtemp(join(tmpdir(), 'leasehold-mutants-'))
  await checkCopy(join(folder, 'copy.mjs'))
  const waiting = [...mutants.entries()]
  const missed: string[] = []
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [index, mutant] = next
      const say = (how: string): void => {
        const number = String(index + 1).padStart(2)
        console.log(`${number}/${mutants.length} ${mutant.name}: ${how}`)
      }
      if (mutant.test) {
        if (await isCaught(mutant, mutant.test)) say(`by the test "${mutant.test.name}"`)
        else missed.push(mutant.name)
        continue
      }
      const caught = await run(
        mutant,
        join(folder, `${index}.mjs`),
        Math.min(within ?? SEEDS, mutant.recipe === undefined ? SEEDS : RECIPE_SEEDS),
        within === undefined ? ENOUGH : 1,
      )
      if (caught.failed.length === 0) missed.push(mutant.name)
      say(describe(caught))
    }
  }
  try {
    // Wait for all before the folder is removed, and throw the first error.
    const worked = await Promise.allSettled(Array.from({ length: BESIDE }, work))
    for (const one of worked) if (one.status === 'rejected') throw one.reason
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  console.log(`\n${mutants.length - missed.length} caught, ${missed.length} missed`)
  for (const name of missed) console.log(`  npm run sim -- --mutants --only '${name}'`)
  return missed.length > 0 ? 1 : 0
}

/** A copy without a bug must run and find nothing: otherwise every bug would seem caught. */
async function checkCopy(file: string): Promise<void> {
  const { done, failed } = await run({ name: 'none', edits: [] }, file, COPY_SEEDS, 1)
  if (done === COPY_SEEDS && failed.length === 0) return
  throw new Error(`a copy of the build without a bug fails: ${JSON.stringify(failed)}`)
}

function describe(caught: Caught): string {
  const { done, failed } = caught
  if (failed.length === 0) return `NOT CAUGHT in ${done} seeds`
  const share = (100 * failed.length) / done
  const [{ seed, message = '' }] = failed as [Caught['failed'][number]]
  const example = `seed ${seed}: ${message.split('\n')[0]!.slice(0, 160)}`
  return `${share.toFixed(share < 10 ? 2 : 0)} % of ${done} seeds, by ${whoCaught(caught)} (${example})`
}

function whoCaught({ failed }: Caught): string {
  const count = new Map<string, number>()
  for (const { checkers } of failed) {
    for (const checker of checkers) count.set(checker, (count.get(checker) ?? 0) + 1)
  }
  return [...count]
    .sort((a, b) => b[1] - a[1])
    .map(([checker]) => checker)
    .join('; ')
}

async function run(mutant: Mutant, file: string, seeds: number, enough: number): Promise<Caught> {
  await bundle(mutant, file)
  const output = await node([
    file,
    '--json',
    '--seeds',
    String(seeds),
    '--stop',
    String(enough),
    ...(mutant.recipe === undefined ? [] : ['--recipe', mutant.recipe]),
    ...(mutant.replicas ? ['--replicas'] : []),
  ])
  await rm(file)
  return JSON.parse(output.trim().split('\n').at(-1)!)
}

function node(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    let errors = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    child.stderr.on('data', (chunk) => {
      errors += chunk
    })
    child.on('error', reject)
    child.on('close', () => {
      // A bug that crashes the process counts as noticed.
      if (output.includes('"done"')) resolve(output)
      else
        resolve(
          JSON.stringify({
            done: 1,
            failed: [
              {
                seed: 0,
                checkers: [
                  `the process died: ${errors.split('\n').find((line) => /Error/.test(line)) ?? '?'}`,
                ],
              },
            ],
          }),
        )
    })
  })
}
