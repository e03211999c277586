/** A separate process that takes keys, reports each, and renews none. The parent kills it. */
import { fileURLToPath } from 'node:url'
import { etcdStore } from 'leasehold/etcd'
import { EtcdClient } from '../../../engines/etcd-client.js'

export const SAMPLES = 100
const EVERY_MS = 10
const TTL = 2000

/** A held key, and its end by `wallNow`. */
export interface Held {
  readonly key: string
  readonly due: number
}

/** The same clock in all processes of the machine. */
export const wallNow = () => performance.timeOrigin + performance.now()

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function openOurs(port: string): Promise<(key: string) => Promise<number>> {
  const store = await etcdStore({ endpoints: `127.0.0.1:${port}` })
  return async (key) => {
    const due = wallNow() + TTL
    await store.grant({ holder: 'gone', ttl: TTL, claims: [{ key }] })
    return due
  }
}

async function openTheirs(port: string): Promise<(key: string) => Promise<number>> {
  const client = new EtcdClient(Number(port))
  return async (key) => {
    const lease = await client.grant(TTL / 1000)
    // The Lock service renews the lease once, so count from here.
    const due = wallNow() + TTL
    await client.lock(key, lease)
    return due
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.on('disconnect', () => process.exit())
  const [name, port, prefix] = process.argv.slice(2) as [string, string, string]
  const hold = await (name === 'ours' ? openOurs : openTheirs)(port)
  for (let number = 0; number < SAMPLES; number++) {
    const key = `${prefix}/${number}`
    void hold(key).then((due) => process.send!({ key, due } satisfies Held))
    await rest(EVERY_MS)
  }
}
