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
import { machine } from './machine/machine.js'
import { KILL_WITH_PARENT } from './machine/programs.js'
import type { Row } from './measure/rows.js'
import { writeDocument, writePlot } from './report/document.js'
import { textTable } from './report/tables.js'
import { SUITES } from './suites/index.js'

const RESULTS = new URL('../results/', import.meta.url)
/** A suite should take at most eight minutes. The limit is longer, for a busy machine. */
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
  // Partial results and results with fewer rounds are printed, but not stored.
  const isWhole = hasEngines && !only && rounds === undefined && failures.length === before
  if (isWhole) write(suite, here, rows)
  else
    process.stderr.write(`${suite}: not written to bench/results, because the run is incomplete\n`)
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
    say(`Suites: ${names}. Without a suite, all run.`)
    say('With "document": writes docs/benchmarks.md from the stored results.')
    say('With --rounds: runs n rounds instead of five or more, and stores nothing.')
    process.exit(values.help ? 0 : 2)
  }
  const { rounds } = values
  if (rounds !== undefined && !/^[1-9]\d*$/.test(rounds)) {
    console.error(`--rounds is '${rounds}'; it must be a whole number of at least 1`)
    process.exit(2)
  }
  return {
    ...(wanted !== undefined && { wanted }),
    ...(only !== undefined && { only }),
    ...(rounds !== undefined && { rounds }),
  }
}

/** Returns false if an engine cannot be installed. The run is then incomplete. */
function installEngines(): boolean {
  const script = fileURLToPath(new URL('../../scripts/engines.sh', import.meta.url))
  const { status } = spawnSync('bash', [script, 'redis', 'postgres', 'etcd', 'zookeeper', 'nats'], {
    env: { ...process.env, CI: 'true' },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (status !== 0) failures.push('some engines are not installed and were left out: see above')
  return status === 0
}

/** Each measurement has its own data folder, which is removed however the measurement ends. */
function measure(suite: string, measurement: string): Row[] {
  const path = `./suites/${SUITES[suite]!.group}/${suite}/${measurement}.js`
  const file = fileURLToPath(new URL(path, import.meta.url))
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  // Some engines run as another user, which must be able to enter the folder.
  chmodSync(folder, 0o711)
  const [program, ...args] = [...KILL_WITH_PARENT, process.execPath, '--expose-gc', file]
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
