import { BATCH } from './batch.ts'
import { COMMANDS } from './commands.ts'
import { LEASE_ENDS } from './lease-ends.ts'
import { QUEUES } from './queues.ts'
import { READINGS } from './readings.ts'
import { TABLES } from './tables.ts'
import { UPKEEP } from './upkeep.ts'

/**
 * How the functions are planned that are called directly, and all that they call. A plan is made once
 * per connection and kept: making it takes longer than running it. Made while the tables were empty,
 * it would always read them from end to end, if it could.
 */
const PLANNED = 'set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off'

/**
 * What each version of the schema adds to the one before, the first at index 0. A released version
 * is never changed: what must change becomes the next one.
 */
export const MIGRATIONS: readonly string[] = [
  [TABLES, BATCH, QUEUES, LEASE_ENDS, COMMANDS, READINGS, UPKEEP]
    .join('\n')
    .replaceAll('@planned', PLANNED),
]
