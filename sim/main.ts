/**
 * `npm run sim`: runs simulated worlds and says what went wrong in them.
 *
 *   npm run sim -- --seeds 2000           the seeds from 1 to 2000
 *   npm run sim -- --from 5000 --seeds 9  nine seeds from 5000 on
 *   npm run sim -- --seed 42 --trace      one seed, with all that happened in it
 *   npm run sim -- --mutants              plants each known bug, and sees whether it is caught
 */
import { parseArgs } from 'node:util'
import { runMutants } from './mutants/run.js'
import { runSeed, type SeedResult } from './run-seed.js'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    mutants: { type: 'boolean', default: false },
    only: { type: 'string' },
    within: { type: 'string' },
    json: { type: 'boolean', default: false },
    stop: { type: 'string', default: '10' },
  },
})

// Errors are made by the thousand here, and where they came from is only read when tracing.
if (!values.trace) Error.stackTraceLimit = 0

if (values.mutants)
  process.exitCode = await runMutants({
    only: values.only,
    within: values.within === undefined ? undefined : Number(values.within),
  })
else if (values.seed !== undefined) process.exitCode = await one(Number(values.seed), values.trace)
else process.exitCode = await many(Number(values.from), Number(values.seeds), Number(values.stop))

async function one(seed: number, trace: boolean): Promise<number> {
  const result = await runSeed(seed, trace)
  for (const line of result.trace) console.log(line)
  report(result)
  console.log(
    `seed ${seed}: ${result.held} times held, ${result.calls} calls, history ${result.hash.toString(16)}`,
  )
  return result.violations.length > 0 ? 1 : 0
}

async function many(from: number, count: number, stop: number): Promise<number> {
  const start = performance.now()
  const failed: SeedResult[] = []
  let done = 0
  for (let seed = from; seed < from + count && failed.length < stop; seed++) {
    const result = await runSeed(seed)
    done++
    if (result.violations.length > 0) {
      failed.push(result)
      if (!values.json) report(result)
    }
    if (!values.json && done % 100 === 0) progress(done, count, failed.length, start)
  }
  if (values.json) {
    console.log(
      JSON.stringify({
        done,
        failed: failed.map(({ seed, violations }) => ({
          seed,
          checkers: [...new Set(violations.map(({ checker }) => checker))],
        })),
      }),
    )
    return failed.length > 0 ? 1 : 0
  }
  progress(done, count, failed.length, start)
  const rate = done / ((performance.now() - start) / 1000)
  console.log(
    `\n${done - failed.length} passed, ${failed.length} failed (${rate.toFixed(0)} seeds a second)`,
  )
  return failed.length > 0 ? 1 : 0
}

function progress(done: number, count: number, failed: number, start: number): void {
  const rate = done / ((performance.now() - start) / 1000)
  const width = 30
  const filled = Math.round((done / count) * width)
  const bar = '#'.repeat(filled) + '-'.repeat(width - filled)
  const line = `[${bar}] ${done} of ${count} seeds, ${rate.toFixed(0)} a second, ${failed} with violations`
  if (process.stderr.isTTY) process.stderr.write(`\r${line}`)
  else if (done % 5000 === 0 || done === count) process.stderr.write(`${line}\n`)
}

function report({ seed, violations }: SeedResult): void {
  for (const { checker, message, time } of violations) {
    console.log(`seed ${seed}, ${(time / 1000).toFixed(3)} s: ${checker}: ${message}`)
  }
  if (violations.length > 0) console.log(`  npm run sim -- --seed ${seed} --trace`)
}
