import pg from 'pg'
import { postgresLog } from '../../../src/logs/postgres/index.ts'
import { replicaStore } from '../../../src/replica/index.ts'
import type { OpenStore } from '../../faults/index.ts'

/** Snapshots are so frequent that a process that pauses for a while finds its entries trimmed. */
export const openStore: OpenStore = async (connectionString) => {
  const pool = new pg.Pool({ connectionString, max: 4 }).on('error', () => {})
  return replicaStore(await postgresLog(pool, { timeout: 3000 }), { snapshotBytes: 4000 })
}
