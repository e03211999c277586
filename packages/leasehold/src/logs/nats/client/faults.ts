import type { ErrorCode } from '../../../port/index.ts'

/** What errors mean. Those of JetStream have numbers, those of the client library names. */
export const FAULTS: readonly (readonly [mark: RegExp, code: ErrorCode, meaning: string])[] = [
  [/10023|10047|10077|10122|10002/, 'storage-full', 'NATS storage is full: raise its limits'],
  [/10054/, 'limit-exceeded', 'the entry is larger than the stream allows: raise max_msg_size'],
  [/10039|10076/, 'unsupported', 'JetStream is off: start the server with -js'],
  [
    /no ?responders|\b503\b/i,
    'unknown-outcome',
    'no server answers for JetStream: start NATS with -js, or wait until its cluster has a leader',
  ],
  [/10074|10005/, 'unsupported', 'the cluster has fewer servers than replicas: use fewer replicas'],
  [/permission/i, 'forbidden', 'the NATS user may not use a subject: see docs/nats.md'],
  [/authoriz|authenticat/i, 'unauthenticated', 'NATS does not accept the login of the client'],
  [/closed ?connection/i, 'closed', 'the NATS client gave up: set maxReconnectAttempts to -1'],
]
