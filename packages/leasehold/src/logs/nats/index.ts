export type { NatsClient, NatsMessage } from '../../clients/nats/index.ts'
export { natsLog, natsStore } from './nats-log.ts'
export type { NatsLogOptions } from './options.ts'
