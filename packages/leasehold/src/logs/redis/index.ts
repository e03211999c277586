export * from '../../stores/redis/index.ts'
export * from './options.ts'
