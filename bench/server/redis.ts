/**
 * Durable lock and unlock through the server, against the same on Redis by hand: SET NX PX, and a
 * script that deletes the key if it is still one's own. Both are on the disk before they answer, and
 * each has one connection from one client process. Redis gives no fencing token, no queue and no
 * notice for it; ioredis is measured as it comes, and with its own batching of a turn's commands.
 */
import { Redis } from 'ioredis'
import { startRedis } from '../engines.js'
import { atLeast, type Row, row } from '../rows.js'
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
  const pairs = { store: ours.store, client: ours.client, plain: plain.pair, piped: piped.pair }
  for (const [inFlight, goal] of [
    [64, 1.2],
    [512, 3],
  ] as const) {
    const measured: Record<keyof typeof pairs, number[]> = {
      store: [],
      client: [],
      plain: [],
      piped: [],
    }
    for (let round = -1; round < ROUNDS; round++) {
      for (const [name, pair] of Object.entries(pairs)) {
        const value = await pairsPerSecond(pair, inFlight, PAIRS)
        if (round >= 0) measured[name as keyof typeof pairs].push(value)
      }
    }
    const { store, client, plain, piped } = measured
    const against = (mine: readonly number[], theirs: readonly number[]) =>
      mine.map((value, index) => value / theirs[index]!)
    const what = `${inFlight} in flight`
    rows.push(
      row(`durable claim + release, ${what}`, 'pairs/s', store),
      row(`durable lock + unlock by the client, ${what}`, 'pairs/s', client),
      row(`Redis, appendfsync always, ${what}`, 'pairs/s', plain),
      row(`Redis with auto-pipelining, ${what}`, 'pairs/s', piped),
      row(`claim + release against Redis, ${what}`, 'x', against(store, plain), atLeast(goal)),
      row(`lock + unlock by the client against Redis, ${what}`, 'x', against(client, plain)),
      row(`claim + release against auto-pipelining, ${what}`, 'x', against(store, piped)),
    )
  }
  plain.redis.disconnect()
  piped.redis.disconnect()
  await ours.end()
  await engine.end()
}
console.log(JSON.stringify(rows))
