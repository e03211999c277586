import { fileStore } from 'leasehold/file'
import { createServer } from 'leasehold-server'
import { answerSamples } from './sample.ts'

/**
 * A server on a file store in a folder. The limits are far lower than usual, and the log is
 * compacted far more often. So everything fills up in the first minutes and must then stay
 * constant.
 */
const LIMITS = { requests: 2000, ended: 2000, history: 2000, events: 2048, idleKeys: 500 }

const store = await fileStore(process.argv[2]!, {
  limits: LIMITS,
  segmentBytes: 128 << 10,
  snapshotBytes: 256 << 10,
})
const checks = { allow: { loopback: true } }
const server = await createServer({ store, limits: LIMITS, port: 0, checks })
answerSamples()
process.send!({ url: server.url })
