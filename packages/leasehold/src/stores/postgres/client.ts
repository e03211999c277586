import { invalid, show } from '../../port/index.ts'

/** The parts of `pg` that are used: a `Pool`. */
export interface PgPool {
  query(text: string): Promise<unknown>
  query(statement: { text: string; values: Value[]; name?: string }): Promise<unknown>
  connect(): Promise<PgPoolClient>
}

/** A client that a pool lent. It listens, and is not returned. */
export interface PgPoolClient {
  query(statement: { text: string; query_timeout: number }): Promise<unknown>
  on(event: 'notification', receive: (message: { payload?: string | undefined }) => void): unknown
  on(event: 'error' | 'end', lost: (error?: Error) => void): unknown
  release(destroy?: boolean): void
}

/** The parts of `postgres` (postgres.js) that are used: `sql`. */
export interface PostgresJs {
  unsafe(text: string, values?: Value[], options?: { prepare: boolean }): PromiseLike<unknown>
  listen(
    channel: string,
    receive: (payload: string) => void,
    listening?: () => void,
  ): Promise<{ unlisten(): Promise<void> }>
  readonly options?: { readonly fetch_types?: boolean | undefined } | undefined
}

export type PostgresClient = PgPool | PostgresJs

export type Rows = readonly Readonly<Record<string, unknown>>[]
/** Both libraries send a string unchanged, and bytes as a `bytea`. */
export type Value = string | Uint8Array

/** A common interface of both libraries. Values are strings, which both send unchanged. */
export interface Connection {
  /**
   * One statement with one row and one column. Returns its value. With a name it is prepared under that
   * name, which only a direct connection to PostgreSQL is sure to remember.
   */
  ask(text: string, values: string[], name?: string): Promise<unknown>
  /** The rows of one statement. A `bytea` comes as a buffer, a `bigint` as a string. */
  rows(text: string, values: Value[], name?: string): Promise<Rows>
  /** Several statements without values, in one transaction. Returns the rows of the last one with any. */
  script(text: string): Promise<Rows>
  /**
   * Listens on its own connection. The returned function stops it. `changed` is called with false when
   * that connection is lost: nothing is received any more until the caller listens again. It is
   * called with true when the library has listened again by itself. A connection that does not
   * answer `within` this many milliseconds is dropped.
   */
  listen(
    channel: string,
    receive: (payload: string) => void,
    changed: (isUp: boolean) => void,
    within: number,
  ): Promise<() => void>
}

export function connectionOf(client: PostgresClient, name = 'client'): Connection {
  if (isMethod(client, 'unsafe') && isMethod(client, 'listen')) {
    const sql = client as PostgresJs
    checkTypes(sql, name)
    return ofPostgresJs(sql)
  }
  if (isMethod(client, 'query') && isMethod(client, 'connect') && 'totalCount' in client) {
    return ofPool(client as PgPool)
  }
  throw invalid(
    `${name} is ${show(client)}: give a Pool of pg (a single Client cannot be shared), or the sql of postgres.js`,
  )
}

function isMethod(client: unknown, name: string): boolean {
  return typeof (client as Record<string, unknown> | undefined)?.[name] === 'function'
}

/**
 * postgres.js queries the array types on each new connection, and does not handle the failure of that
 * query. If the connection breaks in the meantime, the unhandled rejection ends the process.
 */
function checkTypes(sql: PostgresJs, name: string): void {
  if (!sql.options?.fetch_types) return
  throw invalid(
    `${name} fetches types, and postgres.js ends the process if a connection breaks meanwhile: open it with postgres(url, { fetch_types: false }), or give the store a client of its own`,
  )
}

function ofPool(pool: PgPool): Connection {
  const rows: Connection['rows'] = async (text, values, name) => {
    const statement = name === undefined ? { text, values } : { text, values, name }
    return ((await pool.query(statement)) as { rows: Rows }).rows
  }
  return {
    rows,
    ask: async (text, values, name) => only(await rows(text, values, name)),
    async script(text) {
      const results = (await pool.query(text)) as { rows: Rows } | { rows: Rows }[]
      return lastRows(Array.isArray(results) ? results.map(({ rows }) => rows) : [results.rows])
    },
    async listen(channel, receive, changed, within) {
      const client = await pool.connect()
      let over = false
      const end = () => {
        if (!over) client.release(true)
        over = true
      }
      const lost = () => {
        if (over) return
        end()
        changed(false)
      }
      client.on('error', lost)
      client.on('end', lost)
      client.on('notification', ({ payload }) => {
        if (!over) receive(payload ?? '')
      })
      try {
        await client.query({ text: `listen "${channel}"`, query_timeout: within })
      } catch (error) {
        end()
        throw error
      }
      return end
    },
  }
}

function only([row]: Rows): unknown {
  return row === undefined ? undefined : Object.values(row)[0]
}

function lastRows(all: readonly Rows[]): Rows {
  return all.findLast((rows) => Array.isArray(rows) && rows.length > 0) ?? []
}

/**
 * A statement with values that is not prepared by name takes this library two round trips, because it
 * queries their types first. So we ask it to prepare, which it does unless it was opened with
 * `prepare: false`, as behind a pooler. It listens again by itself when its connection broke.
 */
function ofPostgresJs(sql: PostgresJs): Connection {
  const rows: Connection['rows'] = async (text, values) =>
    (await sql.unsafe(text, values, { prepare: true })) as Rows
  return {
    rows,
    ask: async (text, values) => only(await rows(text, values)),
    async script(text) {
      const result = (await sql.unsafe(text)) as Rows | Rows[]
      return lastRows(Array.isArray(result[0]) ? (result as Rows[]) : [result as Rows])
    },
    async listen(channel, receive, changed) {
      let over = false
      let listening = false
      const listener = await sql.listen(
        channel,
        (payload) => {
          if (!over) receive(payload)
        },
        () => {
          if (listening && !over) changed(true)
          listening = true
        },
      )
      return () => {
        over = true
        listener.unlisten().catch(() => {})
      }
    },
  }
}
