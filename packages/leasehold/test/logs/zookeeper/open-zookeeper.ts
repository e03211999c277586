import { zookeeperStore } from '../../../src/logs/zookeeper/index.ts'
import type { OpenStore } from '../../faults/index.ts'

/** Snapshots are so frequent that who stands still for a while finds its entries trimmed. */
export const openStore: OpenStore = (servers) =>
  zookeeperStore({ servers, root: '/faults', snapshotBytes: 4000 })
