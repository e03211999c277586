import { etcdStore } from '../../../src/logs/etcd/index.ts'
import type { OpenStore } from '../../faults/index.ts'

/** Snapshots are so frequent that a process that pauses for a while finds its entries trimmed. */
export const openStore: OpenStore = (endpoints) => etcdStore({ endpoints, snapshotBytes: 4000 })
