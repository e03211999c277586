export * from '../../stores/redis/index.ts'
export type { RedisLogOptions } from './options.ts'
export { redisLog } from './redis-log.ts'
