// Mutation testing: `npm run mutation -- <folder>`. Stryker changes the sources of one folder, one
// place at a time, and runs the tests of that folder. A change that no test notices survives. Fails
// if the tests notice less than 85 %. The files in mutation/explained list the changes that may
// survive, and why.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Stryker } from '@stryker-mutator/core'
import { glob } from 'tinyglobby'
import { FOLDERS } from './mutation/folders.js'

const SCORE_MIN = 85
const BATCH_LINES = 800
const ROOT = fileURLToPath(new URL('../', import.meta.url))
const RESULTS = join(ROOT, 'scripts/mutation/results')

process.chdir(ROOT)
const { folder, concurrency, force, only } = readArguments()
const mutants = await run(folder)
process.exitCode = report(folder, mutants) ? 0 : 1

function readArguments() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      concurrency: { type: 'string', default: '1' },
      force: { type: 'boolean', default: false },
      only: { type: 'string' },
    },
  })
  const [name] = positionals
  if (positionals.length === 1 && Object.hasOwn(FOLDERS, name)) {
    return { ...values, folder: name, concurrency: Number(values.concurrency) }
  }
  const names = Object.keys(FOLDERS).join(', ')
  console.error(`folder is ${name}: use one of ${names}, as in npm run mutation -- kernel`)
  process.exit(2)
}

/** Runs a few files at a time. Keeps finished results and repeats only what changed since. */
async function run(name) {
  const { sources, tests } = FOLDERS[name]
  process.env.MUTATION_TESTS = JSON.stringify(await filesOf(tests))
  // Once is enough, because all batches have the same tests.
  process.env.MUTATION_REPEAT = 'yes'
  const mutants = []
  for (const files of batches(await filesOf(sources))) {
    console.log(`${new Date().toISOString().slice(11, 19)} ${files.join(' ')}`)
    mutants.push(...(await runFiles(name, files)))
    delete process.env.MUTATION_REPEAT
  }
  return mutants
}

/** Groups the files, because each run starts with all tests without a mutant. */
function batches(files) {
  const all = []
  let lines = Infinity
  for (const file of files) {
    // A file that only re-exports has nothing to change.
    if (file.endsWith('/index.ts') || (only !== undefined && !file.endsWith(only))) continue
    const length = readFileSync(file, 'utf8').split('\n').length
    if (lines + length > BATCH_LINES) {
      all.push([])
      lines = 0
    }
    all.at(-1).push(file)
    lines += length
  }
  return all
}

/** The files in the order of the patterns, and of the names in their braces. */
async function filesOf(patterns) {
  const files = []
  for (const pattern of patterns.flatMap(alternatives)) files.push(...(await glob(pattern)).sort())
  return [...new Set(files)]
}

function alternatives(pattern) {
  const [, before, names, after] = /^(.*?)\{(.*?)\}(.*)$/.exec(pattern) ?? []
  return names === undefined ? [pattern] : names.split(',').map((name) => before + name + after)
}

async function runFiles(name, files) {
  mkdirSync(join(RESULTS, name), { recursive: true })
  const incrementalFile = join(
    RESULTS,
    name,
    `${basename(files[0])}-${basename(files.at(-1))}.json`,
  )
  forgetConstants(incrementalFile)
  const stryker = new Stryker({
    mutate: files,
    testRunner: 'in-process',
    plugins: [
      join(ROOT, 'scripts/mutation/test-runner.js'),
      join(ROOT, 'scripts/mutation/ignore-messages.js'),
    ],
    ignorers: ['messages'],
    coverageAnalysis: 'perTest',
    incremental: true,
    incrementalFile,
    force,
    concurrency,
    // The runner itself ends tests that are idle or endless: this is for what it cannot see.
    timeoutMS: 30_000,
    timeoutFactor: 1.5,
    dryRunTimeoutMinutes: 10,
    reporters: ['progress-append-only'],
    logLevel: 'warn',
    allowConsoleColors: false,
    ignorePatterns: ['dist', 'docs', 'data', 'fuzz/corpus', 'fuzz/failures', 'fuzz/found'],
    // Rewriting it needs TypeScript's programmatic API, which version 7 does not have.
    tsconfigFile: 'none',
    tempDirName: '.stryker-tmp',
    warnings: { slow: false },
    disableTypeChecks: false,
  })
  const mutants = await stryker.runMutationTest()
  return mutants.filter((mutant) => files.includes(pathOf(mutant)))
}

/**
 * Forgets surviving mutants of module constants. Stryker does not know which tests concern them, so
 * it would not try them again after a new test.
 */
function forgetConstants(file) {
  if (!existsSync(file)) return
  const known = JSON.parse(readFileSync(file, 'utf8'))
  for (const source of Object.values(known.files)) {
    source.mutants = source.mutants.filter((it) => !(it.static && it.status === 'Survived'))
  }
  writeFileSync(file, JSON.stringify(known))
}

function report(name, mutants) {
  const judged = mutants.filter(({ status }) => status !== 'Ignored' && !status.endsWith('Error'))
  const escaped = judged.filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
  const { explained, stale } = explain(name, escaped)
  const survived = escaped.filter((mutant) => !explained.has(mutant))
  const killed = judged.length - escaped.length
  const counted = judged.length - explained.size
  const score = counted === 0 ? 100 : (killed / counted) * 100
  for (const mutant of survived) console.log(describe(mutant))
  for (const entry of stale)
    console.log(`explained, but does not survive: ${JSON.stringify(entry)}`)
  const summary = {
    folder: name,
    mutants: judged.length,
    killed,
    // Part of `killed`: on a busy machine a slow test looks like an endless one.
    timedOut: judged.filter(({ status }) => status === 'Timeout').length,
    survived: survived.length,
    explained: explained.size,
    score: Number(score.toFixed(1)),
  }
  console.log(
    Object.entries(summary)
      .map(([key, value]) => `${key} ${value}`)
      .join(', '),
  )
  if (only === undefined) {
    writeFileSync(join(RESULTS, `${name}.json`), `${JSON.stringify(summary, null, 2)}\n`)
  }
  if (score < SCORE_MIN)
    console.log(`the score is below ${SCORE_MIN} %: write tests that notice the survivors`)
  return score >= SCORE_MIN
}

/** Returns the survivors with an explanation, and the explanations without a survivor. */
function explain(name, escaped) {
  const file = join(ROOT, `scripts/mutation/explained/${name}.json`)
  const entries = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : []
  const explained = new Set()
  const stale = entries.filter((entry) => {
    const found = escaped.filter((mutant) => matches(entry, mutant))
    for (const mutant of found) explained.add(mutant)
    return found.length === 0
  })
  return { explained, stale }
}

/** Compares the code of the line, not its number, which every change above it moves. */
function matches({ file, code, mutator, replacement }, mutant) {
  return (
    pathOf(mutant).endsWith(file) &&
    lineOf(mutant) === code &&
    mutator === mutant.mutatorName &&
    (replacement === undefined || replacement === oneLine(mutant.replacement))
  )
}

function describe(mutant) {
  const { mutatorName, replacement, location, status } = mutant
  const missed = status === 'NoCoverage' ? ' (no test runs it)' : ''
  return `${pathOf(mutant)}:${location.start.line} ${mutatorName}${missed}\n    ${lineOf(mutant)}\n    → ${oneLine(replacement).slice(0, 120)}`
}

function pathOf({ fileName }) {
  return relative(ROOT, join(ROOT, relative(ROOT, fileName))).replaceAll('\\', '/')
}

function lineOf(mutant) {
  const lines = readFileSync(join(ROOT, pathOf(mutant)), 'utf8').split('\n')
  return lines[mutant.location.start.line - 1].trim()
}

function oneLine(text) {
  return text.replaceAll(/\s+/g, ' ').trim()
}
