export type { IoRedisClient, NodeRedisClient, RedisClient } from './client.ts'
export type { RedisStoreOptions } from './options.ts'
export { redisStore } from './redis-store.ts'
