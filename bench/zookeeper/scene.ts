import { zookeeperStore } from 'leasehold/zookeeper'
import { peer } from '../peers.js'
import type { Pair } from '../server/pairs.js'

// biome-ignore lint/suspicious/noExplicitAny: the library has no types.
type Any = any

const { default: zookeeper }: Any = await peer('node-zookeeper-client')

export interface Scene {
  readonly pair: Pair
  end(): Promise<void>
}

/** A claim and its release, with request ids, as our client sends them. */
export async function openStore(servers: string): Promise<Scene> {
  const store = await zookeeperStore({ servers, timeout: '60s' })
  const granted = await store.grant({ holder: 'bench', ttl: 600_000 })
  if (granted.outcome !== 'granted') throw new Error('not granted')
  const { lease } = granted
  const run = `AbCdEfGhIjKl-${lease}`
  let number = 0
  return {
    pair: async (key) => {
      const request = `${run}-${++number}`
      const claimed = await store.claim({ lease, claims: [{ key }], request })
      if (claimed.outcome !== 'claimed' || !claimed.holds) throw new Error('not held')
      await store.release({ lease, keys: [key], token: claimed.token, request: `${request}r` })
    },
    end: () => store.close(),
  }
}

/**
 * The least that a lock in ZooKeeper can be: a node that is there or not. No token, no queue, no
 * notice, no request that can be repeated.
 */
export async function openRaw(servers: string): Promise<Scene> {
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
