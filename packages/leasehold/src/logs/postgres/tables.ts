import type { LogEntry, Position } from '../../log/index.ts'
import type { Rows, Value } from '../../stores/postgres/client.ts'
import { refuseOther, schemaLock } from '../../stores/postgres/migrate.ts'
import type { SnapshotParts } from '../snapshots.ts'
import type { Settings } from './options.ts'

/** The result of one read. */
export interface Page {
  /** A different epoch is a different log. */
  readonly epoch: string
  readonly last: Position
  readonly trimmed: Position
  readonly entries: readonly LogEntry[]
}

/**
 * The statements on the tables of one log. Each append first updates the only row of `head`, and so
 * waits until the previous append is committed: positions become visible in order, without gaps.
 */
export class Tables {
  readonly channel: string
  /** Identifies this process in notifications: it does not read what it appended itself. */
  readonly sender: string
  readonly #settings: Settings
  readonly #schema: string

  constructor(settings: Settings) {
    this.#settings = settings
    this.#schema = settings.schema
    this.channel = `${settings.schema}_entries`
    this.sender = settings.random.id()
  }

  /** Creates the tables that are missing. A log whose head was lost gets a new epoch. */
  async open(): Promise<void> {
    const { connection, random } = this.#settings
    const s = this.#schema
    const isThere = await connection.ask(`select to_regclass('${s}.part')::text`, [])
    if (!isThere) {
      await connection.script(`
        select ${schemaLock(s)};
        do $$ begin
          ${refuseOther(s, 'heartbeats', 'a store of postgresStore, form=native')}
        end $$;
        create schema if not exists ${s};
        create table if not exists ${s}.head (id int primary key check (id = 1), epoch text not null,
          last bigint not null, trimmed bigint not null) with (fillfactor = 10);
        create table if not exists ${s}.entry (position bigint primary key, bytes bytea not null);
        alter table ${s}.entry alter column bytes set storage external;
        create table if not exists ${s}.part (name text primary key, bytes bytea not null)`)
    }
    await this.#rows(
      `insert into ${s}.head select 1, $1::text, coalesce(max(position), 0), 0 from ${s}.entry on conflict do nothing`,
      [random.id()],
    )
  }

  /** Appends only if the log still has this epoch. */
  async append(entry: Uint8Array, epoch: string): Promise<Position> {
    const s = this.#schema
    const [row] = await this.#rows(
      `with synced as (select set_config('synchronous_commit', case
          when current_setting('synchronous_commit') in ('off', 'local') then 'on'
          else current_setting('synchronous_commit') end, true)),
        head as (update ${s}.head set last = last + 1 from synced where epoch = $2::text returning last),
        notified as (select last, pg_notify('${this.channel}', last || ' ' || $3::text) from head)
        insert into ${s}.entry select last, $1 from notified returning position`,
      [entry, epoch, this.sender],
      'append',
    )
    if (row === undefined) throw new Error('the log was deleted, or deleted and created again')
    return Number(row['position'])
  }

  /** The entries after a position, at most 64, and where the log begins and ends. */
  async read(after: Position): Promise<Page> {
    const s = this.#schema
    const rows = await this.#rows(
      `select h.epoch, h.last, h.trimmed, e.position, e.bytes from ${s}.head h left join lateral (
        select position, bytes from ${s}.entry where position > $1::text::bigint
        order by position limit 64) e on true order by e.position`,
      [`${after}`],
      'read',
    )
    if (rows.length === 0) throw new Error('the head row of the log was deleted')
    const [{ epoch, last, trimmed }] = rows as [Rows[0]]
    const entries = rows
      .filter(({ position }) => position !== null)
      .map((row) => ({ position: Number(row['position']), bytes: row['bytes'] as Buffer }))
    return { epoch: String(epoch), last: Number(last), trimmed: Number(trimmed), entries }
  }

  async trim(through: Position): Promise<void> {
    const s = this.#schema
    await this.#rows(
      `with head as (update ${s}.head set trimmed = least($1::text::bigint, last)
          where trimmed < least($1::text::bigint, last) returning trimmed)
        delete from ${s}.entry using head where position <= head.trimmed`,
      [`${through}`],
    )
  }

  get parts(): SnapshotParts {
    const part = `${this.#schema}.part`
    return {
      names: async () =>
        (await this.#rows(`select name from ${part}`)).map((row) => `${row['name']}`),
      put: (name, bytes) =>
        this.#rows(
          `insert into ${part} values ($1::text, $2) on conflict (name) do update set bytes = $2`,
          [name, bytes],
        ),
      get: async (name) => {
        const [row] = await this.#rows(`select bytes from ${part} where name = $1::text`, [name])
        return row?.['bytes'] as Buffer | undefined
      },
      remove: (name) => this.#rows(`delete from ${part} where name = $1::text`, [name]),
    }
  }

  /** A named statement is prepared once, which works only on a direct connection. */
  #rows(sql: string, values: Value[] = [], name?: string): Promise<Rows> {
    const { connection, listener } = this.#settings
    const isDirect = name !== undefined && listener === connection
    return connection.rows(sql, values, isDirect ? `${this.#schema}.${name}` : undefined)
  }
}
