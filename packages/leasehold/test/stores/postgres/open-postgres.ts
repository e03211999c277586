import pg from 'pg'
import postgres from 'postgres'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import type { OpenStore } from '../../faults/index.ts'

/** The argument is the library, the address, `#` and the schema. */
export const openStore: OpenStore = async (argument) => {
  const [library, url, schema] = argument.split(/ |#/) as [string, string, string]
  const options = { schema, timeout: '1500ms' } as const
  if (library === 'postgres.js') {
    return postgresStore(
      postgres(url, { max: 4, fetch_types: false, onnotice: () => {}, backoff: false }),
      options,
    )
  }
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  pool.on('error', () => {})
  return postgresStore(pool, options)
}
