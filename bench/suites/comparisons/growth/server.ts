/** Lock and unlock through a server, 64 at a time, beside many live leases; the same on Redis. */
import { remoteStore } from 'leasehold/remote'
import { fillOurs, fillRedis } from '../../../engines/fill.js'
import { loadPeer } from '../../../engines/peer-library.js'
import { startRedis } from '../../../engines/start.js'
import { LOCKERS, type Locker } from '../../../lockers/index.js'
import type { Peer, Run } from '../../../measure/compare.js'
import { pairOf, throughput } from '../../../measure/latency-and-throughput.js'
import type { Row } from '../../../measure/rows.js'
import { startServer } from '../../parts/remote/processes.js'
import { growthOf, pointOf } from './points.js'

const SIZES = [1000, 10_000, 100_000, 1_000_000]
const RUN_MS = 400
const TTL = 3_600_000

/** Microseconds for one pair, with 64 in flight. */
function pairs(locker: Locker): () => Promise<Run> {
  const pair = pairOf(locker)
  return async () => {
    const { value, count } = await throughput(pair, 64, RUN_MS)
    return { value: 1e6 / value, count }
  }
}

const server = await startServer('memory')
const store = await remoteStore(server.url)
const ours = await LOCKERS['our server']({ port: server.port, ttl: 30_000 })
const engine = await startRedis(false)
const { Redis } = await loadPeer('ioredis')
const redis = engine && new Redis({ port: engine.port })
const raw = engine && (await LOCKERS['raw ioredis']({ port: engine.port, ttl: 30_000 }))
const rival: Peer | undefined = raw && {
  name: 'Redis: raw lock + unlock, 64 in flight',
  pids: [engine.pid],
  run: pairs(raw),
}
const rows: Row[] = []
let alive = 0
for (const leases of SIZES) {
  const batch = { count: leases - alive, ttl: TTL, prefix: `others-${leases}/` }
  process.stderr.write(`  filling up to ${leases}\n`)
  await fillOurs(store, batch)
  if (redis) await fillRedis(redis, batch)
  alive = leases
  rows.push(
    ...(await pointOf({
      curve: 'server: lock + unlock, 64 in flight',
      leases,
      ours: pairs(ours),
      pids: [server.pid],
      peers: [rival],
    })),
  )
}
await Promise.all([ours.close(), raw?.close(), store.close()])
redis?.disconnect()
await Promise.all([server.end(), engine?.end()])
console.log(JSON.stringify([...rows, ...growthOf(rows)]))
