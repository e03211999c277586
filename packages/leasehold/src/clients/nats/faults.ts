import type { ErrorCode } from '../../port/index.ts'

/** JetStream's errors have numbers; those of the client library have names. */
export const FAULTS: readonly (readonly [mark: RegExp, code: ErrorCode, meaning: string])[] = [
  [/10023|10047|10077|10122|10002/, 'storage-full', 'NATS has no room: raise its limits'],
  [/10054/, 'limit-exceeded', 'the entry is larger than the stream takes: raise max_msg_size'],
  [/10039|10076/, 'unsupported', 'JetStream is off: start the server with -js'],
  [
    /no ?responders|\b503\b/i,
    'unknown-outcome',
    'no server answers for JetStream: start NATS with -js, or wait until its cluster has a leader',
  ],
  [/10074|10005/, 'unsupported', 'the cluster has too few servers for so many replicas'],
  [/permission/i, 'forbidden', 'the NATS user may not use a subject: see docs/nats.md'],
  [/authoriz|authenticat/i, 'unauthenticated', 'NATS does not accept the login of the client'],
  [/closed ?connection/i, 'closed', 'the NATS client gave up: set maxReconnectAttempts to -1'],
]
