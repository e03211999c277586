import type { LeaseStore } from 'leasehold/port'
import { postgresStore } from 'leasehold/postgres'
import pg from 'pg'
import { type Engine, postgresUrl } from '../../../engines/start.js'
import type { Pair } from '../../parts/server/pairs.js'

/** The number of connections that makes raw statements fastest on the machines we have seen. */
const CONNECTIONS = 16

export interface PostgresSetup {
  readonly pool: pg.Pool
  readonly store: LeaseStore
  end(): Promise<void>
}

/** A new store on a new pool. */
export async function openPostgres(engine: Engine): Promise<PostgresSetup> {
  const pool = poolOf(engine)
  const store = await postgresStore(pool, { timeout: '60s' })
  return {
    pool,
    store,
    end: async () => {
      await store.close()
      await pool.end()
    },
  }
}

export const poolOf = ({ port }: Engine) => poolAt(port)

export function poolAt(port: number): pg.Pool {
  return new pg.Pool({ connectionString: postgresUrl({ port }), max: CONNECTIONS })
}

/** A claim and its release, with request ids, as our client sends them. */
export async function storePair(store: LeaseStore): Promise<Pair> {
  const granted = await store.grant({ holder: 'bench', ttl: 600_000 })
  if (granted.outcome !== 'granted') throw new Error('not granted')
  const { lease } = granted
  const run = `AbCdEfGhIjKl-${lease}`
  let number = 0
  return async (key) => {
    const request = `${run}-${++number}`
    const claimed = await store.claim({ lease, claims: [{ key }], request })
    if (claimed.outcome !== 'claimed' || !claimed.holds) throw new Error('not held')
    await store.release({ lease, keys: [key], token: claimed.token, request: `${request}r` })
  }
}

/**
 * The minimum for a lock in a table: a row that is taken if it is free or expired, and deleted if
 * it is still ours. No token, no queue, no notification, no repeatable requests.
 */
export async function rawPair(pool: pg.Pool): Promise<Pair> {
  await pool.query(
    'create table if not exists raw_locks (key text primary key, owner text, until timestamptz)',
  )
  let number = 0
  return async (key) => {
    const owner = `AbCdEfGhIjKlMnOpQrStUv-${++number}`
    const taken = await pool.query({
      name: 'take',
      text: `insert into raw_locks values ($1, $2, clock_timestamp() + interval '60s')
        on conflict (key) do update set owner = excluded.owner, until = excluded.until
        where raw_locks.until < clock_timestamp()`,
      values: [key, owner],
    })
    if (taken.rowCount !== 1) throw new Error('not locked')
    const freed = await pool.query({
      name: 'free',
      text: 'delete from raw_locks where key = $1 and owner = $2',
      values: [key, owner],
    })
    if (freed.rowCount !== 1) throw new Error('not unlocked')
  }
}
