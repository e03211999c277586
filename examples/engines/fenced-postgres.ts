import { isLeaseholdError } from 'leasehold'
import { postgresFence } from 'leasehold/fence'
import pg from 'pg'

/**
 * An account that only the newest holder can pay into. Give the address of a PostgreSQL:
 *
 *   node examples/dist/engines/fenced-postgres.js postgres://postgres@127.0.0.1/postgres
 */
const pool = new pg.Pool({ connectionString: process.argv[2] })
const fence = postgresFence(pool)
await fence.prepare()
await pool.query('create table if not exists account (id text primary key, balance bigint)')

/** The check is in the transaction of the write: both happen, or neither. */
async function pay(amount: number, token: number): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await fence.within(client, 'accounts/7', token)
    await client.query(
      `insert into account values ('7', $1)
       on conflict (id) do update set balance = account.balance + excluded.balance`,
      [amount],
    )
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

await pay(100, 10)
console.log('the newer holder pays 100 with token 10')

try {
  await pay(100, 9)
} catch (error) {
  if (!isLeaseholdError(error, 'stale-token')) throw error
  console.log(`the late one is refused: ${error.code}, it has seen ${error.highest}`)
}

const { rows } = await pool.query<{ balance: string }>('select balance from account')
console.log(`balance: ${rows[0]?.balance}`)
await pool.end()
