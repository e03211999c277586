import type pg from 'pg'
import type { LeaseStore } from '../../../src/port/index.ts'
import { postgresMigration, postgresStore } from '../../../src/stores/postgres/index.ts'
import type { Opened } from '../../../src/testing/index.ts'
import { leftOpen } from '../../setup/changed-store.ts'

/**
 * A schema whose clock stands still until a test moves it: its function `clock` reads a table. As in
 * the kernel, `advance` stops at every deadline on the way.
 */
export class MovedPostgres {
  readonly #pool: pg.Pool
  readonly #schema: string
  readonly store: LeaseStore

  private constructor(pool: pg.Pool, schema: string, store: LeaseStore) {
    this.#pool = pool
    this.#schema = schema
    this.store = store
  }

  static async make(pool: pg.Pool, schema: string): Promise<MovedPostgres> {
    await pool.query(postgresMigration({ schema }))
    await pool.query(`create table ${schema}.moved (now float8);
      insert into ${schema}.moved select floor(extract(epoch from clock_timestamp())) * 1000;
      create or replace function ${schema}.clock() returns float8 language sql volatile as
        'select now from ${schema}.moved'`)
    // It polls slowly and never takes over the deadlines: only `advance` handles them.
    const store = await postgresStore(pool, { schema, poll: '1h' })
    return new MovedPostgres(pool, schema, store)
  }

  async open(): Promise<Opened> {
    return { store: leftOpen(this.store), advance: (ms) => this.advance(ms) }
  }

  async advance(ms: number): Promise<void> {
    const end = (await this.#number('select now from @.moved')) + ms
    for (;;) {
      const next = await this.#number(
        "select coalesce(min(look_at), 'infinity') from @.leases where look_at < 'infinity'",
      )
      if (next > end) break
      await this.#number('update @.moved set now = greatest(now, $1) returning now', next)
      await this.#number("update @.meta set sweeper = 'test' returning 0")
      await this.#number("select @.sweep(1000, 'test', 1, 0)->>2")
    }
    await this.set(end)
  }

  async set(now: number): Promise<void> {
    await this.#number('update @.moved set now = $1 returning now', now)
  }

  async #number(text: string, ...values: number[]): Promise<number> {
    const { rows } = await this.#pool.query({
      text: text.replaceAll('@.', `${this.#schema}.`),
      values,
      rowMode: 'array',
    })
    return Number((rows[0] as unknown as unknown[])[0])
  }
}
