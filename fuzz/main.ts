import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readInput } from './corpus.ts'
import { FuzzRun, type Summary } from './loop.ts'
import { TARGETS } from './targets/index.ts'

const DEFAULT_MINUTES = 1
/** The folder `fuzz`; this file runs from `fuzz/dist`. */
const FOLDER = fileURLToPath(new URL('../', import.meta.url))

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: String(DEFAULT_MINUTES) },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    replay: { type: 'string' },
  },
})
const chosen = TARGETS.filter(({ name }) => positionals.length === 0 || positionals.includes(name))
const minutes = Number(values.minutes)
const seed = Number(values.seed)
const unknown = positionals.find((name) => !TARGETS.some((target) => target.name === name))
if (unknown !== undefined || !(minutes > 0) || !Number.isSafeInteger(seed)) {
  const names = TARGETS.map(({ name }) => name).join(', ')
  process.stderr.write(`usage: fuzz [${names}] [--minutes N] [--seed N] [--replay FILE]\n`)
  process.exit(2)
}
if (values.replay !== undefined) {
  const fails = await new FuzzRun(chosen[0]!, seed, FOLDER).replay(readInput(values.replay))
  process.stdout.write(fails ? 'The input fails.\n' : 'The input does not fail.\n')
  process.exit(fails ? 1 : 0)
}
process.stdout.write(`seed ${seed}, ${minutes} minutes for ${chosen.length} targets\n`)
const summaries: Summary[] = []
for (const target of chosen) {
  const summary = await new FuzzRun(target, seed, FOLDER).run((minutes * 60_000) / chosen.length)
  summaries.push(summary)
  process.stdout.write(`${row(summary)}\n`)
}
process.stdout.write(`\n| target | inputs | kept | code reached | longest pause | failures |\n`)
process.stdout.write('| --- | ---: | ---: | ---: | ---: | ---: |\n')
for (const summary of summaries) process.stdout.write(`${row(summary)}\n`)
process.exit(summaries.some(({ failures }) => failures > 0) ? 1 : 0)

function row({ target, inputs, corpus, covered, longestPause, failures }: Summary): string {
  return `| ${target} | ${inputs} | ${corpus} | ${covered} | ${longestPause} ms | ${failures} |`
}
