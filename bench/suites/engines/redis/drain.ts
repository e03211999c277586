/**
 * 32 waiters for one key of Redis, each with its own connections; each holds it for 1 ms in turn.
 * The bound is a token that passes on by BLPOP: Redis gives it directly to the longest waiter. If
 * its holder dies, the token is lost.
 */
import { Redis } from 'ioredis'
import { startRedis } from '../../../engines/start.js'
import { LOCKERS, type Locker } from '../../../lockers/index.js'
import { locker, type OpenLocker } from '../../../lockers/locker.js'
import { compareFigures, measureCpu, type Peer } from '../../../measure/compare.js'
import type { Row } from '../../../measure/rows.js'
import { openMany, WAITERS, WaiterQueue } from '../../comparisons/contended/waiter-queue.js'

const TTL = 30_000

const openToken: OpenLocker = async ({ port }) => {
  const redis = new Redis({ port, host: '127.0.0.1' })
  return locker(
    async (key) => {
      const isFirst = await redis.set(`${key}/made`, 'yes', 'NX')
      if (isFirst === null) await redis.blpop(key, 0)
      return { release: () => redis.rpush(key, 'token'), believes: () => true }
    },
    async () => redis.disconnect(),
  )
}

const rows: Row[] = []
const engine = await startRedis(false)
if (engine) {
  const opened: Locker[] = []
  let keys = 0
  const candidate = async (name: string, open: OpenLocker): Promise<Peer> => {
    const lockers = await openMany(() => open({ port: engine.port, ttl: TTL }))
    opened.push(...lockers)
    const run = async () => {
      const queue = await WaiterQueue.form(lockers, `drained/${++keys}`)
      const spent = measureCpu([engine.pid])
      const took = await queue.drain()
      return { values: [took, queue.inversions()], cpu: spent(WAITERS) }
    }
    return { name, run }
  }
  rows.push(
    ...(await compareFigures({
      name: 'hand-over in Redis',
      figures: [
        { name: `${WAITERS} waiters, until all have held`, unit: 'ms', better: 'less' },
        { name: 'out of order', unit: '%', better: 'less' },
      ],
      ours: await candidate('ours', LOCKERS['our Redis store']),
      peers: [
        { ...(await candidate('a token by BLPOP', openToken)), limit: true, goal: 1 / 1.15 },
        { ...(await candidate('redis-semaphore', LOCKERS['redis-semaphore'])), goal: 3 },
        await candidate('redlock 5', LOCKERS['redlock 5']),
      ],
      rounds: 7,
    })),
  )
  await Promise.all(opened.map((one) => one.close()))
  await engine.end()
}
console.log(JSON.stringify(rows))
