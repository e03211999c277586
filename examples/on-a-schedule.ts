// Run it: npm run build && node examples/dist/on-a-schedule.js
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { borrowStore, lendStore } from './life-of-a-lease/store-over-ipc.ts'

/**
 * A job that runs twice a second, in a fleet of three workers. One of them runs it. It is killed, and
 * another continues where it stopped: what was due meanwhile is run late, and nothing is run twice.
 */
const EVERY_MS = 500
const RUNS_BEFORE = 3
const RUNS_AFTER = 6

if (process.argv[2] === undefined) await fleet()
else await worker(process.argv[2])

async function worker(name: string): Promise<void> {
  // A worker without its parent has no store to ask.
  process.on('disconnect', () => process.exit())
  const leasehold = await Leasehold.open(await borrowStore(), { holder: name })
  let due = 0
  leasehold.on('recipe-event', ({ event }) => {
    // It is done when this is reported, and not before.
    if (event === 'ran') process.send!({ name, due })
  })
  const work = ({ time }: { time: Date }) => {
    due = time.getTime()
  }
  await leasehold.cron('clean-up', { every: EVERY_MS }, work, { ttl: '1s' })
  process.send!({ name, ready: true })
}

interface Report {
  readonly name?: string
  readonly due?: number
  readonly ready?: boolean
}

async function fleet(): Promise<void> {
  const store = memoryStore()
  const runs: { readonly name: string; readonly due: number }[] = []
  const start = async (name: string): Promise<ChildProcess> => {
    const child = fork(fileURLToPath(import.meta.url), [name], { serialization: 'advanced' })
    lendStore(store, child, () => {})
    child.on('message', ({ due }: Report) => {
      if (due !== undefined) runs.push({ name, due })
    })
    await said(child, ({ ready }) => ready === true)
    return child
  }

  const one = await start('one')
  await said(one, ({ due }) => due !== undefined)
  const others = [await start('two'), await start('three')]
  console.log('three workers; one of them runs the job')
  while (runs.length < RUNS_BEFORE) await said(one, ({ due }) => due !== undefined)
  one.kill('SIGKILL')
  await once(one, 'exit')
  const before = runs.length
  console.log('it is KILLED')

  while (runs.length < before + RUNS_AFTER) {
    await Promise.race(others.map((child) => said(child, ({ due }) => due !== undefined)))
  }
  const names = new Set(runs.map(({ name }) => name))
  const gaps = runs.slice(1).map(({ due }, at) => due - runs[at]!.due)
  console.log(`another one continues: ${names.size === 2}`)
  console.log(`none left out, none doubled: ${gaps.every((gap) => gap === EVERY_MS)}`)
  for (const child of others) child.kill('SIGKILL')
  await Promise.all(others.map((child) => once(child, 'exit')))
  await store.close()
}

function said(child: ChildProcess, wanted: (report: Report) => boolean): Promise<void> {
  return new Promise((resolve) => {
    const listen = (report: Report) => {
      if (!wanted(report)) return
      child.off('message', listen)
      resolve()
    }
    child.on('message', listen)
  })
}
