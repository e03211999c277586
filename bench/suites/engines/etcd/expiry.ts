/**
 * A process holds keys and is killed. Another process waits for the keys on its own replica: how
 * late does it hold each key after the ttl, beside many live leases? The time counts from the
 * moment the holder sent its grant, on the machine's clock, so it includes the network. The ttl is
 * 2 s, the minimum of etcd. The peer is etcd's own lease: holder and waiter use the Lock service.
 * Each side has its own etcd. Our other leases are renewed all the time. Theirs have a long ttl,
 * which saves etcd those renewals.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Leasehold } from 'leasehold'
import { etcdStore } from 'leasehold/etcd'
import { EtcdClient } from '../../../engines/etcd-client.js'
import { fillEtcd, fillOurs } from '../../../engines/fill.js'
import { startEtcd } from '../../../engines/start.js'
import { compareFigures, type Peer } from '../../../measure/compare.js'
import { atMost, percentile, type Row } from '../../../measure/rows.js'
import { type Held, SAMPLES, wallNow } from './abandoned-keys.js'

const OTHERS = 10_000
const OTHERS_TTL = 10_000
const ABANDONED_KEYS = fileURLToPath(new URL('./abandoned-keys.js', import.meta.url))

let runs = 0

/** `wait` is fulfilled when the key is held. */
function candidate(
  name: 'ours' | 'etcd leases',
  port: number,
  wait: (key: string) => Promise<unknown>,
): Peer {
  const run = async () => {
    const holder = fork(ABANDONED_KEYS, [name, `${port}`, `vanished/${++runs}`])
    const samples: Promise<number>[] = []
    const all = new Promise<void>((resolve, reject) => {
      holder.once('exit', () => reject(new Error('the holder ended by itself')))
      holder.on('message', ({ key, due }: Held) => {
        samples.push(wait(key).then(() => wallNow() - due))
        if (samples.length === SAMPLES) resolve()
      })
    })
    await all
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    const lags = await Promise.all(samples)
    return { values: [percentile(lags, 0.5), percentile(lags, 0.99)] }
  }
  return { name, run }
}

const rows: Row[] = []
const [engine, other] = [await startEtcd(), await startEtcd()]
if (engine && other) {
  const store = await etcdStore({ endpoints: `127.0.0.1:${engine.port}`, timeout: '60s' })
  const leasehold = await Leasehold.open(store, { holder: 'next' })
  const leases = await fillOurs(store, { count: OTHERS, ttl: OTHERS_TTL, prefix: 'others/' })
  const heartbeat = setInterval(() => void store.renew(leases), OTHERS_TTL / 3)
  const client = new EtcdClient(other.port)
  await fillEtcd(client, { count: OTHERS, ttl: 3_600_000, prefix: 'others/' })
  const next = await client.grant(3600)
  const what = `a killed holder's key, beside ${OTHERS.toLocaleString('en')} leases: how late`
  rows.push(
    ...(await compareFigures({
      name: 'a killed holder',
      figures: [
        { name: `${what}, p50`, unit: 'ms', better: 'less' },
        { name: `${what}, p99`, unit: 'ms', better: 'less', goal: atMost(40) },
      ],
      ours: candidate('ours', engine.port, (key) => leasehold.lock(key, { ttl: '60s' })),
      peers: [candidate('etcd leases', other.port, (key) => client.lock(key, next))],
      warmUp: false,
    })),
  )
  clearInterval(heartbeat)
  await leasehold.close()
  await store.close()
  client.close()
}
await Promise.all([engine, other].map((one) => one?.end()))
console.log(JSON.stringify(rows))
