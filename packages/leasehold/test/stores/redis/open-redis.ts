import { Redis, type RedisOptions } from 'ioredis'
import { type RedisStoreOptions, redisStore } from '../../../src/stores/redis/index.ts'
import type { OpenStore } from '../../faults/index.ts'

/** The argument of a process of a crowd: how to connect, and the options of the store. */
export interface Opening {
  readonly redis: RedisOptions
  readonly store?: RedisStoreOptions
}

export const openStore: OpenStore = (argument) => {
  const { redis, store }: Opening = JSON.parse(argument)
  const client = new Redis({ ...redis, retryStrategy: () => 50, maxRetriesPerRequest: null })
  // It reconnects by itself. The store decides what that means for a call.
  client.on('error', () => {})
  return redisStore(client, { timeout: 3000, ...store })
}
