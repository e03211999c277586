import { fileStore } from 'leasehold/file'
import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { replicaStore } from 'leasehold/replica'
import type { SimDisk, SimNode } from 'leasehold/testing'
import type { LogLag } from './log-lag.js'

/** Small, so that a world is cheap and every limit is reached in it. */
export const LIMITS = {
  events: 64,
  history: 64,
  historyPerKey: 4,
  idleKeys: 16,
  requests: 4096,
  ended: 4096,
}
const SEGMENT_BYTES = 4096
const SNAPSHOT_BYTES = 6000
/** Replicas take snapshots so often that a slow one finds what it needs trimmed. */
const LOG_SNAPSHOT_BYTES = 4000

/** The store of the server's process that begins now. */
export function openServerStore(
  kind: 'file' | 'memory' | 'log',
  node: SimNode,
  disk: SimDisk,
  log: LogLag,
): LeaseStore | Promise<LeaseStore> {
  const clock = node.clock()
  if (kind === 'log') {
    return replicaStore(log.open(node), {
      clock,
      random: node.random,
      limits: LIMITS,
      snapshotBytes: LOG_SNAPSHOT_BYTES,
      // So short that a server which pauses or is cut off is removed, and joins again.
      memberTtl: node.random.pick([1500, 4000, 30_000]),
    })
  }
  if (kind === 'memory') return memoryStore({ clock, limits: LIMITS })
  return fileStore('sim', {
    clock,
    random: node.random,
    disk,
    limits: LIMITS,
    segmentBytes: SEGMENT_BYTES,
    snapshotBytes: SNAPSHOT_BYTES,
  })
}
