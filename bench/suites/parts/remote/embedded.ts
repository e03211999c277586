/** The same lock and unlock through a server, and with the library embedded in the process. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from 'leasehold/file'
import { memoryStore } from 'leasehold/memory'
import { LOCKERS } from '../../../lockers/index.js'
import { clientLocker } from '../../../lockers/ours.js'
import type { Row } from '../../../measure/rows.js'
import { comparePairs, entrantsOn, TTL } from '../../comparisons/uncontended/pairs.js'
import { startServer } from './processes.js'

const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
const rows: Row[] = []
for (const kind of ['memory', 'file'] as const) {
  const server = await startServer(kind)
  const [remote] = await entrantsOn(server, LOCKERS, ['our server'])
  const store = kind === 'file' ? await fileStore(folder) : memoryStore()
  const embedded = { name: 'the library embedded', locker: await clientLocker(store, TTL) }
  const what = `lock + unlock through the server, ${kind}`
  rows.push(...(await comparePairs({ what, ours: remote!, peers: [embedded], limit: undefined })))
  await Promise.all([remote!.locker.close(), embedded.locker.close()])
  await server.end()
}
rmSync(folder, { recursive: true })
console.log(JSON.stringify(rows))
