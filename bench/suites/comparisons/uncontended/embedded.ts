/**
 * The library without a server, in memory and on the disk, against other in-process locks and
 * against Redis. Redis uses the loopback device and can be shared by processes, which embedded
 * stores cannot. It is the usual alternative.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from 'leasehold/file'
import { memoryStore } from 'leasehold/memory'
import { startRedis } from '../../../engines/start.js'
import { openAsyncMutex } from '../../../lockers/in-process.js'
import { LOCKERS } from '../../../lockers/index.js'
import { clientLocker } from '../../../lockers/ours.js'
import { openVerrouInMemory } from '../../../lockers/redis.js'
import { openDisk } from '../../../machine/disk.js'
import { comparePairs, type Entrant, entrantsOn, TTL } from './pairs.js'

const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
const [redis, durable] = await Promise.all([startRedis(false), startRedis()])
const disk = openDisk()

const memory: Entrant = { name: 'memory', locker: await clientLocker(memoryStore(), TTL) }
const file: Entrant = { name: 'file', locker: await clientLocker(await fileStore(folder), TTL) }
const inMemory: Entrant[] = [
  { name: 'verrou in memory', locker: await openVerrouInMemory({ port: 0, ttl: TTL }) },
  { name: 'async-mutex, which has no lease', locker: await openAsyncMutex() },
  ...(await entrantsOn(redis, LOCKERS, ['raw ioredis'])),
]
const onDisk = await entrantsOn(durable, LOCKERS, ['raw ioredis'])

const rows = [
  ...(await comparePairs({
    what: 'embedded in memory',
    ours: memory,
    peers: inMemory,
    limit: undefined,
  })),
  ...(await comparePairs({
    what: 'embedded on the disk',
    ours: file,
    peers: onDisk,
    limit: {
      name: 'two overwrites with an fdatasync each',
      act: async () => {
        disk.sync()
        disk.sync()
      },
    },
  })),
]
await Promise.all([memory, file, ...inMemory, ...onDisk].map(({ locker }) => locker.close()))
disk.end()
await Promise.all([redis?.end(), durable?.end()])
rmSync(folder, { recursive: true })
console.log(JSON.stringify(rows))
