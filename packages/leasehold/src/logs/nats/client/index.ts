export { FAULTS } from './faults.ts'
export { JetStream, type NatsClient, type NatsMessage, type ServerInfo } from './jet-stream.ts'
