/**
 * The lock recipe of ZooKeeper's manual, with node-zookeeper-client: each waiter has a sequential
 * node that ends with its session, and watches the node before its own.
 */
import { loadPeer } from '../engines/peer-library.js'
import { locker, type OpenLocker } from './locker.js'

// biome-ignore lint/suspicious/noExplicitAny: the library has no types.
type Any = any

const { default: zookeeper }: Any = await loadPeer('node-zookeeper-client')
const { CreateMode, Exception } = zookeeper

const called = <Result>(call: (done: (error: Any, result: Result) => void) => void) =>
  new Promise<Result>((resolve, reject) => {
    call((error, result) => (error ? reject(error) : resolve(result)))
  })

export const openZookeeper: OpenLocker = async ({ port, ttl }) => {
  const client = zookeeper.createClient(`127.0.0.1:${port}`, { sessionTimeout: ttl, retries: 5 })
  await new Promise<void>((resolve) => {
    client.once('connected', resolve)
    client.connect()
  })
  const made = new Set<string>()
  return locker(
    async (key) => {
      const folder = `/${key.replaceAll('/', '-')}`
      // The parent node of a lock is created once and stays, as in Curator.
      if (!made.has(folder)) await makeFolder(client, folder)
      made.add(folder)
      const path = await called<string>((done) =>
        client.create(`${folder}/lock-`, null, CreateMode.EPHEMERAL_SEQUENTIAL, done),
      )
      await turnOf(client, folder, path.slice(folder.length + 1))
      const release = () => called((done) => client.remove(path, -1, done))
      return { release, believes: () => client.getState().name === 'SYNC_CONNECTED' }
    },
    async () => client.close(),
  )
}

async function makeFolder(client: Any, path: string): Promise<void> {
  await called((done) => client.create(path, done)).catch((error) => {
    if (error.code !== Exception.NODE_EXISTS) throw error
  })
}

/** Fulfilled when this node is the first. */
async function turnOf(client: Any, folder: string, own: string): Promise<void> {
  for (;;) {
    const names = (await called<string[]>((done) => client.getChildren(folder, done))).sort()
    const before = names[names.indexOf(own) - 1]
    if (before === undefined) return
    await new Promise<void>((resolve, reject) => {
      const gone = () => resolve()
      client.exists(`${folder}/${before}`, gone, (error: Any, stat: Any) => {
        if (error) reject(error)
        else if (!stat) resolve()
      })
    })
  }
}
