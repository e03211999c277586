import { Leasehold } from 'leasehold'
import { postgresStore } from 'leasehold/postgres'
import pg from 'pg'
import postgres from 'postgres'

/**
 * Two processes that share locks in a database, here as two clients: one with `pg`, the other with
 * postgres.js. Give the address of a PostgreSQL:
 *
 *   node examples/dist/engines/locks-in-postgres.js postgres://postgres@127.0.0.1/postgres
 */
const url = process.argv[2]!
const pool = new pg.Pool({ connectionString: url })
// A pool without this ends the process when the database closes a connection.
pool.on('error', (error) => console.error(error.message))
const sql = postgres(url, { fetch_types: false, onnotice: () => {} })

const one = await Leasehold.open(await postgresStore(pool), { holder: 'one' })
const two = await Leasehold.open(await postgresStore(sql), { holder: 'two' })

const lock = await one.lock('reports/2026-11', { ttl: '30s' })
console.log(`one holds it: ${lock.held}`)
const next = two.lock('reports/2026-11', { ttl: '30s', wait: '10s' })
await lock.release()
console.log(`two holds it next, with a higher token: ${(await next).token > lock.claimToken}`)

await one.close()
await two.close()
await pool.end()
await sql.end()
