import { BATCH } from './batch.ts'
import { COMMANDS } from './commands.ts'
import { LEASE_ENDS } from './lease-ends.ts'
import { LINES } from './lines.ts'
import { READINGS } from './readings.ts'
import { TABLES } from './tables.ts'
import { UPKEEP } from './upkeep.ts'

/**
 * How the functions are planned that are called directly, and all that they call. A plan is made once
 * for each connection and kept: it takes longer to make than to carry out. Made while the tables were
 * empty, it would read them from end to end ever after, if it could.
 */
const PLANNED = 'set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off'

/**
 * What each version of the schema adds to the one before, the first at index 0. A version that has
 * been released is never changed: what must change becomes the next one.
 */
export const MIGRATIONS: readonly string[] = [
  [TABLES, BATCH, LINES, LEASE_ENDS, COMMANDS, READINGS, UPKEEP]
    .join('\n')
    .replaceAll('@planned', PLANNED),
]
