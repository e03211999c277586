/**
 * Lock and unlock on Redis by our client on its store, against lock libraries for Redis and SET NX
 * PX by hand. One process uses one connection to each server. The comparison is unfair to us: none
 * of the others gives a fencing token, a queue, a history or events.
 */
import { startRedis } from '../../../engines/start.js'
import { LOCKERS } from '../../../lockers/index.js'
import type { Row } from '../../../measure/rows.js'
import { comparePairs, entrantsOn } from '../../comparisons/uncontended/pairs.js'

const rows: Row[] = []
for (const durable of [false, true]) {
  const engine = await startRedis(durable)
  if (!engine) continue
  const [ours] = await entrantsOn(engine, LOCKERS, ['our Redis store'])
  const peers = await entrantsOn(
    engine,
    LOCKERS,
    ['raw ioredis', 'redis-semaphore', 'redlock 4', 'redlock 5'],
    {
      'raw ioredis': { inFlight: 0.8 },
      'redis-semaphore': { inFlight: 1 },
      'redlock 4': { inFlight: 1 },
      'redlock 5': { inFlight: 1 },
    },
  )
  const what = durable ? 'Redis on the disk' : 'Redis in memory'
  rows.push(...(await comparePairs({ what, ours: ours!, peers, limit: undefined })))
  await Promise.all([ours!, ...peers].map(({ locker }) => locker.close()))
  await engine.end()
}
console.log(JSON.stringify(rows))
