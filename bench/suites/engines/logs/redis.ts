/** Leases on a log in a stream, against SET NX PX and a script that deletes a key if it is ours. */
import { Redis } from 'ioredis'
import { redisLog } from 'leasehold/redis'
import { replicaStore } from 'leasehold/replica'
import { startRedis } from '../../../engines/start.js'
import { openRaw } from '../../../lockers/redis.js'
import type { Row } from '../../../measure/rows.js'
import { compareLog } from './compare-log.js'

const rows: Row[] = []
for (const durable of [true, false]) {
  const engine = await startRedis(durable)
  if (!engine) continue
  const mine = new Redis({ port: engine.port, maxRetriesPerRequest: null })
  const raw = await openRaw({ port: engine.port, ttl: 60_000 })
  rows.push(
    ...(await compareLog({
      engine: durable ? 'Redis on the disk' : 'Redis in memory',
      store: await replicaStore(await redisLog(mine)),
      rawName: 'SET NX PX + script',
      raw: async (key) => void (await (await raw.lock(key)).release()),
      pids: [engine.pid],
      runs: [
        [64, 20_000, 20_000, durable ? 1.3 : 1.7],
        [512, 40_000, 40_000, durable ? 3.5 : undefined],
      ],
    })),
  )
  await raw.close()
  mine.disconnect()
  await engine.end()
}
console.log(JSON.stringify(rows))
