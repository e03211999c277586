import { connect } from '@nats-io/transport-node'
import { natsLog } from '../../../src/logs/nats/index.ts'
import { replicaStore } from '../../../src/replica/index.ts'
import type { OpenStore } from '../../faults/index.ts'

/** Snapshots are so frequent that a process that pauses for a while finds its entries trimmed. */
export const openStore: OpenStore = async (argument, member) => {
  // Of three members no two use the same two servers: if one is cut off, a member is elsewhere.
  const all = argument.split(',')
  const servers = [0, 1].map((at) => all[(member + at) % all.length]!)
  // The servers announce addresses that bypass the test's connections.
  const client = await connect({
    ...{ servers, ignoreClusterUpdates: true },
    ...{ maxReconnectAttempts: -1, reconnectTimeWait: 50, pingInterval: 500, maxPingOut: 2 },
  })
  const log = await natsLog(client, { replicas: 3, timeout: 3000 })
  return replicaStore(log, { snapshotBytes: 4000 })
}
