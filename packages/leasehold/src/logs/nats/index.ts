export type { NatsClient, NatsMessage } from './client.ts'
export { natsLog, natsStore } from './nats-log.ts'
export type { NatsLogOptions } from './options.ts'
