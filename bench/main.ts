/**
 * `npm run bench -- [suite] [measurement] [--rounds n]`: measures, prints a table, writes JSON rows
 * to bench/results/ and a plot to docs/images/. Without a suite it runs all suites and writes
 * docs/benchmarks.md from the results. Each measurement runs in a process of its own, so that none
 * inherits another's memory. A failure is reported at the end; the other measurements still run.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { writeDocument, writePlot } from './document.js'
import { machine } from './machine.js'
import type { Row } from './rows.js'
import { SUITES } from './suites.js'
import { textTable } from './table.js'
import { WITH_US } from './with-us.js'

const RESULTS = new URL('../results/', import.meta.url)
/** A suite is to be done in eight minutes; this is for a machine that is busy. */
const MEASUREMENT_MS = 15 * 60_000

const { wanted, only, rounds } = readArguments()
if (rounds !== undefined) process.env['BENCH_ROUNDS'] = rounds
const failures: string[] = []
const hasEngines = wanted === 'document' || installEngines()
const suites = wanted === 'document' ? [] : wanted ? [wanted] : Object.keys(SUITES)
for (const suite of suites) {
  const rows: Row[] = []
  const [before, began] = [failures.length, performance.now()]
  const here = machine()
  const measurements = only ? [only] : SUITES[suite]!.measurements
  for (const [at, measurement] of measurements.entries()) {
    process.stderr.write(
      `${suite}: measuring ${measurement}, ${at + 1} of ${measurements.length}\n`,
    )
    rows.push(...measure(suite, measurement))
  }
  console.log(`${textTable(rows)}\n`)
  process.stderr.write(`${suite}: took ${Math.round((performance.now() - began) / 1000)} s\n`)
  // What was measured in part, or in haste, is for the eye only.
  const isWhole = hasEngines && !only && rounds === undefined && failures.length === before
  if (isWhole) write(suite, here, rows)
  else process.stderr.write(`${suite}: not written to bench/results, because it is not whole\n`)
}
const isAll = wanted === undefined && rounds === undefined
if ((isAll && failures.length === 0) || wanted === 'document') writeDocument(RESULTS)
for (const failure of failures) console.error(`FAILED: ${failure}`)
process.exitCode = failures.length > 0 ? 1 : 0

function readArguments(): { wanted?: string; only?: string; rounds?: string } {
  const options = { rounds: { type: 'string' }, help: { type: 'boolean' } } as const
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  const [wanted, only] = positionals
  const isKnown = wanted === undefined || wanted === 'document' || SUITES[wanted] !== undefined
  if (values.help || !isKnown) {
    const say = values.help ? console.log : console.error
    const names = Object.keys(SUITES).join(', ')
    say('usage: npm run bench -- [suite] [measurement] [--rounds n]\n')
    say(`Suites: ${names}. All, where none is named.`)
    say('With "document": writes docs/benchmarks.md from the results that there are.')
    say('With --rounds: so many rounds instead of five or more, and nothing is written.')
    process.exit(values.help ? 0 : 2)
  }
  const { rounds } = values
  if (rounds !== undefined && !/^[1-9]\d*$/.test(rounds)) {
    console.error(`--rounds takes a whole number of at least 1, not '${rounds}'`)
    process.exit(2)
  }
  return {
    ...(wanted !== undefined && { wanted }),
    ...(only !== undefined && { only }),
    ...(rounds !== undefined && { rounds }),
  }
}

/** Where one of the engines cannot be had, what is measured without it is not the whole. */
function installEngines(): boolean {
  const script = fileURLToPath(new URL('../../scripts/engines.sh', import.meta.url))
  const { status } = spawnSync('bash', [script, 'redis', 'postgres', 'etcd', 'zookeeper', 'nats'], {
    env: { ...process.env, CI: 'true' },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (status !== 0) failures.push('engines that are not on this machine are left out: see above')
  return status === 0
}

/** All data are in a folder of the measurement's own, which goes with it, however it ends. */
function measure(suite: string, measurement: string): Row[] {
  const file = fileURLToPath(new URL(`./${suite}/${measurement}.js`, import.meta.url))
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  // Some engines run as a user of their own, who must get through it.
  chmodSync(folder, 0o711)
  const [program, ...args] = [...WITH_US, process.execPath, '--expose-gc', file]
  const child = spawnSync(program!, args, {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    timeout: MEASUREMENT_MS,
    maxBuffer: 64 * 1024 * 1024,
  })
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  if (child.status !== 0) {
    failures.push(`${suite} ${measurement} (${child.signal ?? child.status})`)
    return []
  }
  const rows: Row[] = JSON.parse(child.stdout.trim().split('\n').at(-1)!)
  return rows.map((row) => ({ suite, ...row }))
}

function write(suite: string, here: ReturnType<typeof machine>, rows: readonly Row[]): void {
  mkdirSync(RESULTS, { recursive: true })
  const results = { machine: here, rows }
  writeFileSync(new URL(`${suite}.json`, RESULTS), `${JSON.stringify(results, undefined, 2)}\n`)
  writePlot(suite, rows)
}
