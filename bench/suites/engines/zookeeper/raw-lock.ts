import { loadPeer } from '../../../engines/peer-library.js'
import type { Pair } from '../../parts/server/pairs.js'

// biome-ignore lint/suspicious/noExplicitAny: the library has no types.
type Any = any

const { default: zookeeper }: Any = await loadPeer('node-zookeeper-client')

export interface RawLock {
  readonly pair: Pair
  end(): Promise<void>
}

/**
 * The minimum for a lock in ZooKeeper: a node that exists or not. No token, no queue, no
 * notification, no repeatable requests.
 */
export async function openRaw(servers: string): Promise<RawLock> {
  const client = zookeeper.createClient(servers, { sessionTimeout: 10_000 })
  await new Promise<void>((resolve) => {
    client.once('connected', resolve)
    client.connect()
  })
  const call = (run: (done: (error: Any) => void) => void) =>
    new Promise<void>((resolve, reject) => run((error) => (error ? reject(error) : resolve())))
  await call((done) => client.create('/raw', done))
  const owner = Buffer.from('AbCdEfGhIjKlMnOpQrStUv')
  const { EPHEMERAL } = zookeeper.CreateMode
  return {
    pair: async (key) => {
      const path = `/raw/${encodeURIComponent(key)}`
      await call((done) => client.create(path, owner, EPHEMERAL, done))
      await call((done) => client.remove(path, done))
    },
    end: async () => client.close(),
  }
}
