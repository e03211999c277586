/**
 * kill -9 and a restart with the same data, until the first answer; no engine loses what it
 * acknowledged. Our server and etcd give every lease its full ttl again. In Redis time continues
 * while it is down, so leases end whose holders had no chance to renew. Our time includes the start
 * of Node.
 */
import { remoteStore } from 'leasehold/remote'
import { EtcdClient } from '../../../engines/etcd-client.js'
import { fillEtcd, fillOurs, fillRedis } from '../../../engines/fill.js'
import { loadPeer } from '../../../engines/peer-library.js'
import { startEtcd, startRedis } from '../../../engines/start.js'
import { compare, type Peer } from '../../../measure/compare.js'
import type { Row } from '../../../measure/rows.js'
import { startServer } from '../../parts/remote/processes.js'

const TTL = 3_600_000

/** Repeats a request until it is answered, and checks that the first and the last lease exist. */
async function timed(
  restart: () => Promise<void>,
  isThere: (key: string) => Promise<boolean>,
  leases: number,
): Promise<{ value: number }> {
  const start = performance.now()
  await restart()
  for (const key of ['live/0', `live/${leases - 1}`]) {
    if (!(await isThere(key))) throw new Error(`${key} is lost`)
  }
  return { value: performance.now() - start }
}

interface Restarted extends Peer {
  end(): Promise<void>
}

async function ours(leases: number): Promise<Restarted> {
  const server = await startServer('file')
  const store = await remoteStore(server.url, { timeout: '60s' })
  await fillOurs(store, { count: leases, ttl: TTL, prefix: 'live/' })
  await store.close()
  const run = () =>
    timed(
      () => server.restart(),
      async (key) => {
        const client = await remoteStore(server.url, { timeout: '60s' })
        const { count } = await client.read({ key })
        await client.close()
        return count === 1
      },
      leases,
    )
  return { name: 'our server', run, end: () => server.end() }
}

async function redis(leases: number): Promise<Restarted | undefined> {
  const engine = await startRedis()
  if (!engine) return undefined
  const { Redis } = await loadPeer('ioredis')
  const client = new Redis({ port: engine.port })
  await fillRedis(client, { count: leases, ttl: TTL, prefix: 'live/' })
  client.disconnect()
  const run = () =>
    timed(
      () => engine.restart(),
      async (key) => {
        const asking = new Redis({ port: engine.port })
        const found = await asking.exists(key)
        asking.disconnect()
        return found === 1
      },
      leases,
    )
  return { name: 'Redis, appendfsync always', run, end: () => engine.end() }
}

async function etcd(leases: number): Promise<Restarted | undefined> {
  const engine = await startEtcd()
  if (!engine) return undefined
  const client = new EtcdClient(engine.port)
  await fillEtcd(client, { count: leases, ttl: TTL, prefix: 'live/' })
  client.close()
  const run = () =>
    timed(
      () => engine.restart(),
      async (key) => {
        const asking = new EtcdClient(engine.port)
        const found = await asking.count(key)
        asking.close()
        return found > 0
      },
      leases,
    )
  return { name: 'etcd', run, end: () => engine.end() }
}

const rows: Row[] = []
for (const leases of [20_000, 100_000, 1_000_000]) {
  const name = `restart with ${leases.toLocaleString('en')} leases and keys`
  process.stderr.write(`  ${name}: filling\n`)
  const mine = await ours(leases)
  // Filling etcd takes long, so it appears only beside the smallest number.
  const peers = [await redis(leases), leases === 20_000 ? await etcd(leases) : undefined]
  rows.push(
    ...(await compare({ name, unit: 'ms', better: 'less', ours: mine, peers, warmUp: false })),
  )
  await Promise.all([mine, ...peers].map((one) => one?.end()))
}
console.log(JSON.stringify(rows))
