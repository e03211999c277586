import { parseArgs } from 'node:util'
import { coverage, recordCoverage } from './coverage.js'
import { RECIPES, runRecipe } from './recipes/run-recipe.js'
import { runSeed, type SeedResult } from './run-seed.js'
import { SeedTotals } from './seed-totals.js'

const USAGE = `npm run sim: runs simulated worlds and reports violations.

  npm run sim -- --seeds 2000                the seeds from 1 to 2000 (default: 1000 seeds)
  npm run sim -- --from 5000 --seeds 9       nine seeds from 5000 on
  npm run sim -- --seed 42 --trace           one seed, with its whole history
  npm run sim -- --recipe pool --seeds 200   worlds in which that recipe is used
  npm run sim -- --replicas --seeds 200      worlds with replicas on a shared log
  npm run sim -- --mutants                   plants each known bug, and checks that it is caught
  npm run sim -- --mutants --only name       only bugs whose names contain this string
  npm run sim -- --mutants --replicas        only bugs in the replica
  npm run sim -- --mutants --within 500      only bugs that 500 seeds must show

  --stop 3     end a run after three seeds with violations (default: 10)
  --coverage   print which parts of the port and the client the actors used, as one line of JSON
  --json       print the totals as one line of JSON
  --help       print this

Recipes: ${Object.keys(RECIPES).join(', ')}.
The exit code is 1 if a seed violates an invariant or a planted bug is missed, and 2 if an argument
is wrong.`

const { values } = parse()
if (values.help) {
  console.log(USAGE)
  process.exit()
}

const { recipe } = values
if (recipe !== undefined && !Object.hasOwn(RECIPES, recipe)) {
  console.error(`recipe is '${recipe}'; it must be one of ${Object.keys(RECIPES).join(', ')}`)
  process.exit(2)
}
/** The world of a seed: of the recipe that was asked for, or of locks and calls. */
const play = (seed: number, trace = false): Promise<SeedResult> =>
  recipe === undefined
    ? runSeed(seed, trace, values.replicas ? 'replicas' : 'server')
    : runRecipe(recipe, seed, trace)

// Worlds create thousands of errors. Their stacks are only needed when tracing.
if (!values.trace) Error.stackTraceLimit = 0

if (values.coverage) recordCoverage()
if (values.mutants) {
  const { runMutants } = await import('./mutants/run.js')
  const within = values.within === undefined ? undefined : Number(values.within)
  process.exitCode = await runMutants({ only: values.only, within, replicas: values.replicas })
} else if (values.seed !== undefined) {
  process.exitCode = await one(Number(values.seed), values.trace)
} else {
  process.exitCode = await many(Number(values.from), Number(values.seeds), Number(values.stop))
}

function parse() {
  try {
    return parseArgs({
      options: {
        seeds: { type: 'string', default: '1000' },
        from: { type: 'string', default: '1' },
        seed: { type: 'string' },
        recipe: { type: 'string' },
        replicas: { type: 'boolean', default: false },
        trace: { type: 'boolean', default: false },
        mutants: { type: 'boolean', default: false },
        only: { type: 'string' },
        within: { type: 'string' },
        coverage: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        stop: { type: 'string', default: '10' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`)
    process.exit(2)
  }
}

async function one(seed: number, trace: boolean): Promise<number> {
  const result = await play(seed, trace)
  for (const line of result.trace) console.log(line)
  report(result)
  const { held, calls, hash } = result
  console.log(`seed ${seed}: held ${held} times, ${calls} calls, history ${hash.toString(16)}`)
  return result.violations.length > 0 ? 1 : 0
}

async function many(from: number, count: number, stop: number): Promise<number> {
  const totals = new SeedTotals(count)
  for (let seed = from; seed < from + count && totals.failed.length < stop; seed++) {
    const result = await play(seed)
    totals.add(result)
    if (values.json || values.coverage) continue
    report(result)
    if (totals.done % 100 === 0) totals.showProgress(process.stderr)
  }
  if (values.coverage) console.log(JSON.stringify(coverage()))
  else if (values.json) console.log(totals.json())
  else console.log(totals.summary())
  return totals.failed.length > 0 ? 1 : 0
}

function report({ seed, violations }: SeedResult): void {
  for (const { checker, message, time } of violations) {
    console.log(`seed ${seed}, ${(time / 1000).toFixed(3)} s: ${checker}: ${message}`)
  }
  const which = values.replicas ? '--replicas ' : recipe === undefined ? '' : `--recipe ${recipe} `
  if (violations.length > 0) console.log(`  npm run sim -- ${which}--seed ${seed} --trace`)
}
