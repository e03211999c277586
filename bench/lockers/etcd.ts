import { EtcdClient } from '../engines/etcd-client.js'
import { loadPeer } from '../engines/peer-library.js'
import { locker, type OpenLocker } from './locker.js'

const seconds = (ttl: number) => Math.ceil(ttl / 1000)

/** The npm library etcd3. Its lock does not wait. */
export const openEtcd3: OpenLocker = async ({ port, ttl }) => {
  const { Etcd3 } = await loadPeer('etcd3')
  const client = new Etcd3({ hosts: `http://127.0.0.1:${port}` })
  return locker(
    async (key) => {
      const lock = client.lock(key).ttl(seconds(ttl))
      await lock.acquire()
      // Reads the private lease of a lock, because only the lease reports the loss.
      let isLost = false
      lock.lease.on('lost', () => {
        isLost = true
      })
      return { release: () => lock.release(), believes: () => !isLost }
    },
    async () => client.close(),
  )
}

/** The election of etcd3, which waits in a queue. */
export const openEtcd3Election: OpenLocker = async ({ port, ttl }) => {
  const { Etcd3 } = await loadPeer('etcd3')
  const client = new Etcd3({ hosts: `http://127.0.0.1:${port}` })
  return locker(
    async (key) => {
      const campaign = client.election(key, seconds(ttl)).campaign('bench')
      let isLost = false
      campaign.on('error', () => {
        isLost = true
      })
      await campaign.wait()
      return { release: () => campaign.resign(), believes: () => !isLost }
    },
    async () => client.close(),
  )
}

/** etcd's own Lock and Unlock over gRPC, with one lease for all locks. */
export const openEtcdService: OpenLocker = async ({ port, ttl }) => {
  const client = new EtcdClient(port)
  const lease = await client.grant(seconds(ttl))
  const keepAlives = client.keepAlives()
  // The lease must live while other runs have their turn.
  const heart = setInterval(() => void keepAlives.renew(lease), ttl / 3)
  return locker(
    async (key) => {
      const held = await client.lock(key, lease)
      return { release: () => client.unlock(held), believes: () => true }
    },
    async () => {
      clearInterval(heart)
      keepAlives.end()
      client.close()
    },
  )
}
