import { Redis, type RedisOptions } from 'ioredis'
import { type RedisStoreOptions, redisStore } from '../../../src/stores/redis/index.ts'
import type { OpenStore } from '../../faults/index.ts'

/** What a member of a crowd is told: how to connect, and the options of the store. */
export interface Opening {
  readonly redis: RedisOptions
  readonly store?: RedisStoreOptions
}

export const openStore: OpenStore = (argument) => {
  const { redis, store }: Opening = JSON.parse(argument)
  const client = new Redis({ ...redis, retryStrategy: () => 50, maxRetriesPerRequest: null })
  // It connects again by itself; what that means for a call is the store's to say.
  client.on('error', () => {})
  return redisStore(client, { timeout: 3000, ...store })
}
