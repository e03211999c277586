import { Redis } from 'ioredis'
import { redisLog } from '../../../src/logs/redis/index.ts'
import { replicaStore } from '../../../src/replica/index.ts'
import type { OpenStore } from '../../faults/index.ts'

/** Snapshots are so frequent that a process that pauses for a while finds its entries trimmed. */
export const openStore: OpenStore = async (port) => {
  const options = { retryStrategy: () => 50, maxRetriesPerRequest: null }
  const client = new Redis({ port: Number(port), host: '127.0.0.1', ...options })
  client.on('error', () => {})
  return replicaStore(await redisLog(client, { timeout: 3000 }), { snapshotBytes: 4000 })
}
