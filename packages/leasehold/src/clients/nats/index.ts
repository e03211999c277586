export { FAULTS } from './faults.ts'
export { JetStream, type NatsClient, type NatsMessage } from './jet-stream.ts'
