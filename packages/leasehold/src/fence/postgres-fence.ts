import { invalid, LeaseholdError, show, type Token } from '../port/index.ts'
import { checkAdmission, type Fence, refuseStale, unanswered } from './fence.ts'

/** What is asked of `pg`: a `Pool`, a `Client` or a client from a pool. */
export interface PgClient {
  query(text: string, values: string[]): Promise<{ readonly rows: readonly object[] }>
}

/** What is asked of `postgres` (postgres.js): `sql`, or the `sql` of a transaction. */
export interface PostgresJsClient {
  unsafe(text: string, values: string[]): PromiseLike<readonly object[]>
}

export type PostgresClient = PgClient | PostgresJsClient

export interface PostgresFenceOptions {
  /** The table, `leasehold_fence` if not given. May be `schema.table`. */
  readonly table?: string | undefined
}

/**
 * A fence in a table of PostgreSQL: one row for each resource, with the highest token seen.
 *
 * **Put the check into the transaction of the write** (`within`, or `sql` in the statement itself).
 * Then they are one step: the row stays locked until the transaction ends, so a newer holder waits
 * for it, and an older one that comes later is refused. The fence is then exactly as durable as the
 * data that it guards, and a restored or failed-over database has both from the same moment.
 *
 * `admit` is a transaction of its own, for a resource that lies elsewhere. It relies on
 * `synchronous_commit = on`, which is the default: with `off` a crash may forget the last admissions,
 * and so may the failover to a replica that is not synchronous.
 */
export interface PostgresFence extends Fence {
  /** Makes the table if it is not there. Any number may call it, at once or again. */
  prepare(): Promise<void>

  /**
   * As `admit`, within the caller's transaction: give the client that it runs on. A refusal is
   * thrown; let the transaction be rolled back by it. What PostgreSQL itself throws, such as a
   * serialization failure, comes through as it is, since the transaction is the caller's to repeat.
   */
  within(transaction: PostgresClient, resource: string, token: Token): Promise<void>

  /**
   * The check as a statement, for a statement of one's own: `$1` is the resource and `$2` the token.
   * It gives one row if the token is admitted and none if it is stale, so that
   * `with admitted as (…) insert into … select … from admitted` writes only with a token that is
   * admitted, in one round trip.
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

  /** The row of the resource is locked from here on until the transaction ends, refused or not. */
  async function within(on: PostgresClient, resource: string, token: Token): Promise<void> {
    checkAdmission(resource, token)
    // As text, which both clients send unchanged; the server makes a number of it.
    const admitted = await run(on, sql, [resource, String(token)])
    if (admitted.length > 0) return
    const seen = await run(on, `select token from ${table} where resource = $1`, [resource])
    refuseStale(resource, token, Number((seen[0] as { token?: unknown } | undefined)?.token ?? 0))
    throw unanswered('PostgreSQL', resource, `the row in ${table} was lowered or deleted just now`)
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
        const message = `the table ${table} is not there: call prepare() once before the first admission`
        throw new LeaseholdError('invalid-argument', message, { cause: error })
      }
    },
    async prepare() {
      await run(client, creation(table), [])
    },
  }
}

/**
 * Two that create a table at once collide, even with `if not exists`: so they take turns, by a lock
 * that ends with the statement. Where the table is there, nothing more than reading is needed.
 *
 * Each admission writes its row anew. With free space on its page that touches no index.
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
