import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { formatDuration, type LeaseStore } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { MEASURE_NAMES, MEASURES, type Sample } from './measures.ts'
import { judge, type Verdict } from './plateau.ts'
import type { ProcessSample } from './sample.ts'
import { pause } from './work.ts'

const STEADY = 2
const BRIEF_EVERY_MS = 8000
const SAMPLES = 60
const SAMPLE_MIN_MS = 5000

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '30' } } })
const minutes = Number(values.minutes)
if (!(minutes >= 1)) {
  process.stderr.write(`minutes is ${values.minutes}: use a number of 1 or more\n`)
  process.exit(2)
}
const folder = mkdtempSync(join(tmpdir(), 'leasehold-soak-'))
const fences = mkdtempSync(join(tmpdir(), 'leasehold-soak-fence-'))
const children: ChildProcess[] = []
try {
  process.exitCode = (await soak()) ? 0 : 1
} finally {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
  rmSync(fences, { recursive: true, force: true })
}

async function soak(): Promise<boolean> {
  const server = start('server', [folder])
  const { url } = (await answerOf(server)) as { url: string }
  const steady = Array.from({ length: STEADY }, () => start('client', ['steady', url, fences]))
  await Promise.all(steady.map(answerOf))
  const store = await remoteStore(url)
  const end = performance.now() + minutes * 60_000
  const churning = churn(url, end)
  const every = Math.max(SAMPLE_MIN_MS, (minutes * 60_000) / SAMPLES)
  const times: number[] = []
  const samples: Sample[] = []
  process.stdout.write(`${minutes} minutes, a sample every ${Math.round(every / 1000)} s\n`)
  let cpu = 0
  while (performance.now() < end) {
    await pause(every)
    const taken = await sample(server, steady, store)
    times.push(performance.now())
    samples.push(taken.sample)
    cpu = taken.cpu
    progress(taken.sample)
  }
  await churning
  const state = await leftBehind(store)
  await store.close()
  const verdicts = MEASURE_NAMES.map((name) =>
    judge(
      MEASURES[name],
      times,
      samples.map((each) => each[name]),
    ),
  )
  report(verdicts, cpu / (minutes * 60), state)
  return verdicts.every(({ isPlateau }) => isPlateau)
}

/** Starts processes that end by themselves or are killed. */
async function churn(url: string, end: number): Promise<void> {
  for (let count = 0; performance.now() < end - BRIEF_EVERY_MS; count++) {
    const child = start('client', ['brief', url, fences])
    const gone = once(child, 'exit')
    await pause(BRIEF_EVERY_MS / 2)
    if (count % 2 === 1) child.kill('SIGKILL')
    await gone
    children.splice(children.indexOf(child), 1)
    await pause(BRIEF_EVERY_MS / 2)
  }
}

function start(name: string, args: readonly string[]): ChildProcess {
  const file = fileURLToPath(new URL(`${name}.js`, import.meta.url))
  const child = fork(file, args, {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  children.push(child)
  return child
}

/** The next message of a process; fails if it ends instead. */
async function answerOf(child: ChildProcess): Promise<unknown> {
  const done = new AbortController()
  const { signal } = done
  const gone = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`a process ended with code ${code}`)
  })
  gone.catch(() => {})
  try {
    const [answer] = await Promise.race([once(child, 'message', { signal }), gone])
    return answer
  } finally {
    done.abort()
  }
}

async function ask(child: ChildProcess): Promise<ProcessSample> {
  const answer = answerOf(child)
  child.send({})
  return (await answer) as ProcessSample
}

async function sample(
  server: ChildProcess,
  steady: readonly ChildProcess[],
  store: LeaseStore,
): Promise<{ sample: Sample; cpu: number }> {
  const ours = await ask(server)
  const clients = await Promise.all(steady.map(ask))
  const most = (name: keyof ProcessSample) => Math.max(...clients.map((client) => client[name]))
  const { leases, keys } = await countsOf(store)
  const sizes = readdirSync(folder).map((name) => sizeOf(join(folder, name)))
  return {
    sample: {
      serverRss: ours.rssMb,
      serverHeap: ours.heapMb,
      serverResources: ours.resources,
      serverDescriptors: ours.descriptors,
      clientRss: most('rssMb'),
      clientHeap: most('heapMb'),
      clientResources: most('resources'),
      clientDescriptors: most('descriptors'),
      leases,
      keys,
      files: sizes.length,
      fileBytes: sizes.reduce((sum, size) => sum + size, 0) / (1 << 20),
    },
    cpu: ours.cpu + clients.reduce((sum, client) => sum + client.cpu, 0),
  }
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size
  } catch {
    // It was removed since the folder was listed.
    return 0
  }
}

async function countsOf(store: LeaseStore): Promise<{ leases: number; keys: number }> {
  const { leases } = await store.read({ leases: true })
  const { keys } = await store.read({ prefix: '' })
  return { leases: leases.length, keys: keys.length }
}

/** The number of leases by ttl, and of keys by their first parts. */
async function leftBehind(store: LeaseStore): Promise<string> {
  const { leases } = await store.read({ leases: true })
  const { keys } = await store.read({ prefix: '' })
  const ttls = counted(leases.map(({ ttl }) => formatDuration(ttl)))
  const names = counted(keys.map(({ key }) => key.split('/').slice(0, 2).join('/')))
  return `leases at the end, by ttl: ${ttls}\nkeys at the end: ${names}`
}

function counted(values: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  const sorted = [...counts].sort(([, one], [, other]) => other - one).slice(0, 8)
  return sorted.map(([value, count]) => `${value} × ${count}`).join(', ')
}

function progress(taken: Sample): void {
  const shown = MEASURE_NAMES.map((name) => `${MEASURES[name].name} ${round(taken[name])}`)
  process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${shown.join(', ')}\n`)
}

function report(verdicts: readonly Verdict[], cores: number, state: string): void {
  process.stdout.write(`\nprocessor: ${cores.toFixed(2)} cores\n${state}\n\n`)
  process.stdout.write('| what | after a third | mean | at the end | growth | allowed | |\n')
  process.stdout.write('| --- | ---: | ---: | ---: | ---: | ---: | --- |\n')
  for (const { measure, first, mean, last, growth, allowed, isPlateau } of verdicts) {
    const name = measure.unit === '' ? measure.name : `${measure.name}, ${measure.unit}`
    const cells = [first, mean, last, growth, allowed].map(round)
    process.stdout.write(
      `| ${name} | ${cells.join(' | ')} | ${isPlateau ? 'plateau' : 'grows'} |\n`,
    )
  }
}

function round(value: number): string {
  return String(Math.round(value * 10) / 10)
}
