import { zookeeperStore } from '../../../src/logs/zookeeper/index.ts'
import type { OpenStore } from '../../faults/index.ts'

/** Snapshots are so frequent that a process that pauses for a while finds its entries trimmed. */
export const openStore: OpenStore = (servers) =>
  zookeeperStore({ servers, root: '/faults', snapshotBytes: 4000 })
