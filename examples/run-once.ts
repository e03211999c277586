// Run it: npm run build && node examples/dist/run-once.js
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Leasehold, type Lock } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { borrowStore, lendStore } from './life-of-a-lease/store-over-ipc.ts'

/**
 * A job that runs once in a fleet. Three workers, each in its own process, start at the same time and
 * all want to send last night's invoices. One does it, and is killed in the middle. Its lock expires.
 * The job is not done, so the next one runs it, and continues where the first had stopped. The last one
 * finds it done.
 *
 * `once` remembers what is done, but cannot know how far a dead worker came: the job itself notes that.
 */
const JOB = 'invoices/2026-11-15'
const INVOICES = ['ada', 'bob', 'eve', 'joe']

if (process.argv[2] === undefined) await fleet()
else await worker(process.argv[2], process.argv[3]!)

async function worker(name: string, folder: string): Promise<void> {
  // A worker without its parent has no store to ask.
  process.on('disconnect', () => process.exit())
  const say = (text: string) => process.send!({ says: `${name} ${text}` })
  const sent = join(folder, 'sent')
  await using leasehold = await Leasehold.open(await borrowStore(), { holder: name })
  const sendInvoices = async (lock: Lock) => {
    const before = (await read(sent)).split('\n').filter((line) => line !== '')
    say(`has the lock with token ${lock.token}; ${before.length} of ${INVOICES.length} are sent`)
    for (const invoice of INVOICES.slice(before.length)) {
      // Never write on a lock that is lost: this throws, and the work ends here.
      lock.assertHeld()
      await appendFile(sent, `${invoice}\n`)
      say(`sends the invoice of ${invoice}`)
      if (name === process.argv[4]) await new Promise(() => {})
    }
    say('has done the job')
  }
  const { ran, by } = await leasehold.once(JOB, sendInvoices, { ttl: '1s' })
  if (!ran) say(`finds the job done by ${by}`)
  process.disconnect()
}

async function read(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '')
}

async function fleet(): Promise<void> {
  const store = memoryStore()
  const folder = await mkdtemp(join(tmpdir(), 'run-once-'))
  const file = fileURLToPath(import.meta.url)
  const start = (name: string, stuck = ''): ChildProcess => {
    const child = fork(file, [name, folder, stuck], { serialization: 'advanced' })
    lendStore(store, child, () => {})
    child.on('message', ({ says }: { says?: string }) => {
      if (says === undefined) return
      console.log(says)
    })
    return child
  }

  // The first one gets stuck in its work, so that it can be killed in the middle of it.
  const first = start('one', 'one')
  await said(first, /sends the invoice/)
  const others = [start('two'), start('three')]
  while ((await store.read({ key: `once/run/${JOB}` })).count < 3) {
    await new Promise((resolve) => setImmediate(resolve))
  }
  console.log('two and three wait in the queue')
  first.kill('SIGKILL')
  await once(first, 'exit')
  console.log('one is KILLED in the middle of the job')
  await Promise.all(others.map((child) => once(child, 'exit')))

  const sent = (await readFile(join(folder, 'sent'), 'utf8')).trim().split('\n')
  console.log(`sent, each once: ${sent.join(', ')}`)
  await store.close()
  await rm(folder, { recursive: true })
}

function said(child: ChildProcess, pattern: RegExp): Promise<void> {
  return new Promise((resolve) => {
    child.on('message', ({ says }: { says?: string }) => {
      if (says !== undefined && pattern.test(says)) resolve()
    })
  })
}
