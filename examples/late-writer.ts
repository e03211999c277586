// Run it: npm run build && node examples/dist/late-writer.js
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Leasehold } from 'leasehold'
import { fileFence } from 'leasehold/fence'
import { memoryStore } from 'leasehold/memory'
import { lendStore } from './life-of-a-lease/store-over-ipc.ts'

/**
 * Why a lock is not enough. Alice is a separate process. She takes the lock, checks that she holds it,
 * and is paused (with SIGSTOP) right before she writes. Her lease expires, Bob takes the lock and
 * writes, and then Alice continues. She writes two files: one directly, and one through a fence that
 * knows the tokens.
 */
const KEY = 'reports/nightly'
const TTL_MS = 1000

// If anything goes wrong, this ends the example with an exit code.
setTimeout(() => {
  console.error('this takes too long: something is wrong')
  process.exit(1)
}, 30_000).unref()

type Report = { looked: number } | { wrote: string; state: string }

const folder = await mkdtemp(join(tmpdir(), 'leasehold-'))
const store = memoryStore()
const alice = fork(
  fileURLToPath(new URL('./late-writer/alice.js', import.meta.url)),
  [folder, KEY, String(TTL_MS)],
  { serialization: 'advanced' },
)
process.on('exit', () => alice.kill('SIGKILL')) // She may still be paused.
const looked = new Promise<number>((resolve) => {
  alice.on('message', (report: Report) => {
    if ('looked' in report) resolve(report.looked)
  })
})
const wrote = new Promise<{ wrote: string; state: string }>((resolve) => {
  alice.on('message', (report: Report) => {
    if ('wrote' in report) resolve(report)
  })
})
lendStore(store, alice, () => {})

console.log(`alice looks at her lock: she holds ${KEY} with token ${await looked}`)
console.log('alice is paused, before she could write')

const bob = await Leasehold.open(store, { holder: 'bob' })
const fence = await fileFence(join(folder, 'fence'))
const lock = await bob.lock(KEY, { ttl: TTL_MS })
console.log(`the lease of alice has expired: bob holds ${KEY} with token ${lock.token}`)

const text = `written by bob with token ${lock.token}`
writeFileSync(join(folder, 'unguarded.txt'), text)
await fence.writeFile(KEY, lock.token, join(folder, 'guarded.txt'), text)
console.log('bob writes both files')

alice.kill('SIGCONT')
const late = await wrote
console.log('alice wakes up and writes both files, as she was about to')
console.log(`the fence says: ${late.wrote}`)
console.log(`alice looks at her lock again: ${late.state}`)

for (const name of ['unguarded.txt', 'guarded.txt']) {
  console.log(`${name.padEnd(13)}  ${await readFile(join(folder, name), 'utf8')}`)
}
if (alice.connected) await once(alice, 'exit')
await bob.close()
await fence.close()
await store.close()
await rm(folder, { recursive: true })
