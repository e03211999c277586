/**
 * The memory of a lease with one key, by the memory of the server's process before and after. etcd
 * gets fewer leases, because filling it takes long.
 */
import { remoteStore } from 'leasehold/remote'
import { EtcdClient } from '../../../engines/etcd-client.js'
import { fillEtcd, fillOurs, fillRedis } from '../../../engines/fill.js'
import { loadPeer } from '../../../engines/peer-library.js'
import { type Engine, startEtcd, startRedis } from '../../../engines/start.js'
import { residentBytes } from '../../../machine/process-usage.js'
import { compare, type Peer } from '../../../measure/compare.js'
import { startServer } from '../../parts/remote/processes.js'

const LEASES = 100_000
const ETCD_LEASES = 20_000
const TTL = 600_000

/** Fills a new engine and stops it. */
async function bytes(
  engine: Pick<Engine, 'pid' | 'end'>,
  leases: number,
  fill: () => Promise<unknown>,
): Promise<{ value: number }> {
  const before = residentBytes(engine.pid)
  await fill()
  const value = (residentBytes(engine.pid) - before) / leases
  await engine.end()
  return { value }
}

async function ours() {
  const server = await startServer('memory')
  const store = await remoteStore(server.url)
  const batch = { count: LEASES, ttl: TTL, prefix: 'live/' }
  return bytes(server, LEASES, async () => {
    await fillOurs(store, batch)
    await store.close()
  })
}

async function redis(engine: Engine) {
  const { Redis } = await loadPeer('ioredis')
  const client = new Redis({ port: engine.port })
  return bytes(engine, LEASES, async () => {
    await fillRedis(client, { count: LEASES, ttl: TTL, prefix: 'live/' })
    client.disconnect()
  })
}

async function etcd(engine: Engine) {
  const client = new EtcdClient(engine.port)
  return bytes(engine, ETCD_LEASES, async () => {
    await fillEtcd(client, { count: ETCD_LEASES, ttl: TTL, prefix: 'live/' })
    client.close()
  })
}

/** One value per round; `undefined` if the engine is not installed. */
async function candidate(
  name: string,
  start: () => Promise<Engine | undefined>,
  measure: (engine: Engine) => Promise<{ value: number }>,
): Promise<Peer | undefined> {
  let next = await start()
  if (!next) return undefined
  const run = async () => {
    const engine = next ?? (await start())
    next = undefined
    return measure(engine!)
  }
  return { name, run }
}

const rows = await compare({
  name: 'memory of a lease with a key, at 100,000',
  unit: 'bytes',
  better: 'less',
  ours: { name: 'our server', run: ours },
  peers: [
    await candidate('a key of Redis', () => startRedis(false), redis),
    await candidate('etcd, at 20,000', startEtcd, etcd),
  ],
  warmUp: false,
})
console.log(JSON.stringify(rows))
