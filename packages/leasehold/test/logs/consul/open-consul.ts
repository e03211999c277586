import { consulStore } from '../../../src/logs/consul/index.ts'
import type { OpenStore } from '../../faults/index.ts'

/** Snapshots are so frequent that a process that pauses for a while finds its entries trimmed. */
export const openStore: OpenStore = (endpoints) => consulStore({ endpoints, snapshotBytes: 4000 })
