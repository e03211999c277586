// Run it: npm run build && node examples/dist/own-log.js
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Leasehold } from 'leasehold'
import { replicaStore } from 'leasehold/replica'
import { logConformance } from 'leasehold/testing'
import { FolderLog } from './own-log/folder-log.ts'

/**
 * A log for another engine: here a folder. First it runs the suite that every log must pass, then two
 * stores that share locks through the log.
 */
const root = await mkdtemp(join(tmpdir(), 'leasehold-own-log-'))
let folders = 0
const create = async () => {
  const folder = join(root, String(folders++))
  return { open: () => FolderLog.open(folder), remove: () => rm(folder, { recursive: true }) }
}

let passed = 0
for (const { run } of logConformance({ create })) {
  await run()
  passed++
}
console.log(`the log passes all ${passed} cases`)

const shared = join(root, 'shared')
const stores = [
  await replicaStore(await FolderLog.open(shared)),
  await replicaStore(await FolderLog.open(shared)),
]
const [ada, bob] = await Promise.all(
  ['ada', 'bob'].map((holder, at) => Leasehold.open(stores[at]!, { holder })),
)
const lock = await ada!.lock('printer')
console.log(`ada: ${lock.state}, token ${lock.token}`)
const waiting = bob!.lock('printer', { wait: '10s' })
await lock.release()
const next = await waiting
console.log(`bob: ${next.state}, token ${next.token}`)

await Promise.all([ada!.close(), bob!.close()])
await Promise.all(stores.map((store) => store.close()))
await rm(root, { recursive: true })
