import { invalid, LeaseholdError, show, type Token } from '../port/index.ts'
import { checkAdmission, type Fence, refuseStale, unanswered } from './fence.ts'

/** The parts of `pg` that are used: a `Pool`, a `Client` or a client from a pool. */
export interface PgClient {
  query(text: string, values: string[]): Promise<{ readonly rows: readonly object[] }>
}

/** The parts of `postgres` (postgres.js) that are used: `sql`, or the `sql` of a transaction. */
export interface PostgresJsClient {
  unsafe(text: string, values: string[]): PromiseLike<readonly object[]>
}

export type PostgresClient = PgClient | PostgresJsClient

export interface PostgresFenceOptions {
  /** The table. May be `schema.table`. Default: `leasehold_fence`. */
  readonly table?: string | undefined
}

/**
 * A fence in a table of PostgreSQL: one row per resource, with the highest token seen.
 *
 * **Put the check into the transaction of the write** (`within`, or `sql` in the statement itself).
 * Then they are one step: the row stays locked until the transaction ends, so a newer holder waits
 * for it, and a later one with an older token is refused. The fence is exactly as durable as the
 * data that it protects, and after a restore or a failover both are from the same moment.
 *
 * `admit` is a separate transaction, for a resource outside of this database. It relies on
 * `synchronous_commit = on`, the default. With `off`, a crash may forget the last admissions, and so
 * may a failover to a replica that is not synchronous.
 */
export interface PostgresFence extends Fence {
  /** Creates the table if it does not exist. May be called repeatedly and concurrently. */
  prepare(): Promise<void>

  /**
   * Like `admit`, within the caller's transaction: give the client of that transaction. It throws a
   * refusal, which should roll the transaction back. It passes on PostgreSQL's own errors, such as
   * a serialization failure, unchanged, because the caller must repeat the transaction.
   */
  within(transaction: PostgresClient, resource: string, token: Token): Promise<void>

  /**
   * The check as SQL, for use in your own statement: `$1` is the resource and `$2` the token. It
   * returns one row if the token is admitted and none if it is stale, so that `with admitted as (…)
   * insert into … select … from admitted` writes only with an admitted token, in one round trip.
   */
  readonly sql: string
}

const NAME = /^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/
const NAME_MAX = 63
const UNDEFINED_TABLE = '42P01'

export function postgresFence(
  client: PostgresClient,
  options: PostgresFenceOptions = {},
): PostgresFence {
  const { table = 'leasehold_fence' } = options
  if (typeof table !== 'string' || table.length > NAME_MAX || !NAME.test(table)) {
    throw invalid(
      `table is ${show(table)}: use lower-case letters, digits and _, at most ${NAME_MAX} of them, as in 'fence' or 'schema.fence'`,
    )
  }
  const sql =
    `insert into ${table} as fence (resource, token) values ($1, $2::bigint) ` +
    'on conflict (resource) do update set token = excluded.token ' +
    'where excluded.token >= fence.token returning fence.token'

  /** From here on the row of the resource is locked until the transaction ends, refused or not. */
  async function within(on: PostgresClient, resource: string, token: Token): Promise<void> {
    checkAdmission(resource, token)
    // As a string, which both clients send unchanged. The server converts it to a number.
    const admitted = await run(on, sql, [resource, String(token)])
    if (admitted.length > 0) return
    const seen = await run(on, `select token from ${table} where resource = $1`, [resource])
    refuseStale(resource, token, Number((seen[0] as { token?: unknown } | undefined)?.token ?? 0))
    throw unanswered('PostgreSQL', resource, `the row in ${table} was just lowered or deleted`)
  }

  return {
    sql,
    within,
    async admit(resource, token) {
      try {
        await within(client, resource, token)
      } catch (error) {
        if (error instanceof LeaseholdError) throw error
        if ((error as { code?: unknown } | undefined)?.code !== UNDEFINED_TABLE) {
          throw unanswered('PostgreSQL', resource, error)
        }
        const message = `the table ${table} does not exist. Call prepare() once before the first admission.`
        throw new LeaseholdError('invalid-argument', message, { cause: error })
      }
    },
    async prepare() {
      await run(client, creation(table), [])
    },
  }
}

/**
 * Two concurrent statements that create a table collide, even with `if not exists`. So they take
 * turns, by a lock that ends with the statement. If the table exists, this only reads.
 *
 * Each admission rewrites its row. With free space on the page, that updates no index.
 */
function creation(table: string): string {
  return `do $$ begin
    if to_regclass('${table}') is null then
      perform pg_advisory_xact_lock(hashtext('${table}'));
      create table if not exists ${table} (
        resource text primary key,
        token bigint not null check (token > 0)
      ) with (fillfactor = 50);
    end if;
  end $$`
}

async function run(
  client: PostgresClient,
  text: string,
  values: string[],
): Promise<readonly object[]> {
  if ('unsafe' in client) return client.unsafe(text, values)
  return (await client.query(text, values)).rows
}
