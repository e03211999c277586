/**
 * `npm run bench -- [suite]`: measures, prints a table and writes JSON rows to bench/results/.
 * Each measurement runs in a process of its own, so that none inherits another's memory.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { format, met, type Row } from './rows.js'

const SUITES: Record<string, readonly string[]> = {
  kernel: ['renewals', 'claims', 'client', 'memory', 'storm', 'lag', 'durable', 'restart'],
  remote: ['pairs', 'renewals', 'round-trip'],
  server: ['redis', 'etcd', '../remote/renewals', 'sequential', 'connections', 'expiry'],
  adaptive: ['ttl'],
  http: ['lock'],
}

const [name = 'kernel', only] = process.argv.slice(2)
const suite = SUITES[name]
if (!suite) {
  console.error(`There is no suite ${name}: choose one of ${Object.keys(SUITES).join(', ')}.`)
  process.exit(2)
}

const rows: Row[] = []
for (const measurement of only ? [only] : suite) {
  process.stderr.write(`measuring ${measurement} …\n`)
  rows.push(...measure(measurement))
}
print(rows)
if (!only) write(rows)

function measure(measurement: string): Row[] {
  const file = fileURLToPath(new URL(`./${name}/${measurement}.js`, import.meta.url))
  const child = spawnSync(process.execPath, ['--expose-gc', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    timeout: 10 * 60_000,
  })
  if (child.status !== 0) throw new Error(`${measurement} failed (${child.signal ?? child.status})`)
  return JSON.parse(child.stdout.trim().split('\n').at(-1)!)
}

function print(rows: readonly Row[]): void {
  const cells = rows.map((row) => [
    row.name,
    format(row.value),
    row.unit,
    row.spread ? `${format(row.spread[0])} – ${format(row.spread[1])}` : '',
    row.goal ? `${row.goal.better === 'more' ? '≥' : '≤'} ${format(row.goal.value)}` : '',
    row.goal ? (met(row) ? 'met' : 'MISSED') : '',
  ])
  const table = [['', 'median', '', 'spread', 'goal', ''], ...cells]
  const widths = table[0]!.map((_, column) =>
    Math.max(...table.map((line) => line[column]!.length)),
  )
  for (const line of table) {
    console.log(
      line
        .map((cell, column) =>
          column === 1 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
        )
        .join('  ')
        .trimEnd(),
    )
  }
}

function write(rows: readonly Row[]): void {
  const folder = new URL('../results/', import.meta.url)
  mkdirSync(folder, { recursive: true })
  writeFileSync(new URL(`${name}.json`, folder), `${JSON.stringify(rows, undefined, 2)}\n`)
}
