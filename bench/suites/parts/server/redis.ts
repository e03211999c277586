/**
 * Durable lock and unlock through the server, against the same on Redis by hand: SET NX PX, and a
 * script that deletes the key if it is still ours. Both write to the disk before they answer, and
 * each has one connection from one client process. Redis gives no fencing token, no queue and no
 * notification. ioredis is measured with its defaults, and with its batching of the commands of a
 * turn.
 */
import { Redis } from 'ioredis'
import { startRedis } from '../../../engines/start.js'
import { compare } from '../../../measure/compare.js'
import type { Row } from '../../../measure/rows.js'
import { type Pair, pairsPerSecond, startOurs } from './pairs.js'

const ROUNDS = 7
const PAIRS = 20_000
const DELETE_IF_MINE =
  'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end'

type Scripted = Redis & { unlock(key: string, mine: string): Promise<number> }

function redisPair(port: number, enableAutoPipelining: boolean): { pair: Pair; redis: Redis } {
  const redis = new Redis({ port, host: '127.0.0.1', enableAutoPipelining }) as Scripted
  redis.defineCommand('unlock', { numberOfKeys: 1, lua: DELETE_IF_MINE })
  let number = 0
  const pair = async (key: string) => {
    const mine = `AbCdEfGhIjKlMnOpQrStUv-${++number}`
    if ((await redis.set(key, mine, 'PX', 60_000, 'NX')) !== 'OK') throw new Error('not locked')
    if ((await redis.unlock(key, mine)) !== 1) throw new Error('not unlocked')
  }
  return { pair, redis }
}

const rows: Row[] = []
const engine = await startRedis()
if (engine) {
  const ours = await startOurs()
  const plain = redisPair(engine.port, false)
  const piped = redisPair(engine.port, true)
  for (const [inFlight, goal] of [
    [64, 1.2],
    [512, 3],
  ] as const) {
    const run = (pair: Pair) => async () => ({
      value: await pairsPerSecond(pair, inFlight, PAIRS),
      count: PAIRS,
    })
    rows.push(
      ...(await compare({
        name: `durable, ${inFlight} in flight`,
        unit: 'pairs/s',
        better: 'more',
        ours: [
          { name: 'claim + release', run: run(ours.store), pids: [ours.pid] },
          { name: 'lock + unlock by the client', run: run(ours.client), pids: [ours.pid] },
        ],
        peers: [
          { name: 'Redis, appendfsync always', run: run(plain.pair), pids: [engine.pid], goal },
          { name: 'Redis with auto-pipelining', run: run(piped.pair), pids: [engine.pid] },
        ],
        rounds: ROUNDS,
      })),
    )
  }
  plain.redis.disconnect()
  piped.redis.disconnect()
  await ours.end()
  await engine.end()
}
console.log(JSON.stringify(rows))
