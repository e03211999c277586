/**
 * Servers that share an etcd of three members: the same connections on one server, and spread over
 * three. Each server is a replica that applies all entries. Three servers write more and smaller
 * entries than one, which shows on a machine with few processors.
 */
import { Leasehold } from 'leasehold'
import { remoteStore } from 'leasehold/remote'
import type { Engine } from '../../../engines/start.js'
import { compareFigures, type Peer } from '../../../measure/compare.js'
import { percentile, perSecondAsync, type Row } from '../../../measure/rows.js'
import { startServer } from '../../parts/remote/processes.js'
import { pairsPerSecond } from '../../parts/server/pairs.js'
import { startCluster } from './cluster.js'

const CONNECTIONS = 12
const IN_FLIGHT = 16
const PAIRS = 19_200

interface Fleet {
  readonly candidate: Peer
  end(): Promise<void>
}

/** The connections of one run, and this many servers for them, on a new log. */
async function fleet(name: string, cluster: readonly Engine[], count: number): Promise<Fleet> {
  const members = cluster.map(({ port }) => `127.0.0.1:${port}`).join()
  const address = `etcd://${members}/servers-${count}/` as const
  const servers = await Promise.all(Array.from({ length: count }, () => startServer(address)))
  const stores = await Promise.all(
    Array.from({ length: CONNECTIONS }, (_, at) => remoteStore(servers[at % count]!.url)),
  )
  const clients = await Promise.all(stores.map((store) => Leasehold.open(store)))
  const run = async () => {
    const took: number[] = []
    const load = (client: Leasehold, at: number) =>
      pairsPerSecond(
        async (key) => {
          const start = performance.now()
          const lock = await client.lock(`${at}/${key}`, { ttl: '60s' })
          await lock.release()
          took.push(performance.now() - start)
        },
        IN_FLIGHT,
        PAIRS / CONNECTIONS,
      )
    const rate = await perSecondAsync(PAIRS, () => Promise.all(clients.map(load)))
    return { values: [rate, percentile(took, 0.99)], count: PAIRS }
  }
  return {
    candidate: { name, run, pids: [...servers, ...cluster].map(({ pid }) => pid) },
    end: async () => {
      await Promise.all(clients.map((client) => client.close()))
      await Promise.all(stores.map((store) => store.close()))
      await Promise.all(servers.map((server) => server.end()))
    },
  }
}

const rows: Row[] = []
const cluster = await startCluster()
if (cluster) {
  const three = await fleet('three servers', cluster, 3)
  const one = await fleet('one server', cluster, 1)
  const what = `three servers, ${CONNECTIONS} connections, ${IN_FLIGHT} in flight each`
  rows.push(
    ...(await compareFigures({
      name: what,
      figures: [
        { name: `${what}: lock + unlock`, unit: 'pairs/s', better: 'more' },
        { name: `${what}: lock + unlock, p99`, unit: 'ms', better: 'less' },
      ],
      ours: three.candidate,
      peers: [{ ...one.candidate, goal: [1, 0.5] }],
    })),
  )
  await three.end()
  await one.end()
  for (const member of cluster) await member.end()
}
console.log(JSON.stringify(rows))
