export type { NatsClient, NatsMessage } from './client/index.ts'
export { natsLog, natsStore } from './nats-log.ts'
export type { NatsLogOptions } from './options.ts'
