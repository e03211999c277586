import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { LeaseStore } from '../../../../src/port/index.ts'
import { type PostgresClient, postgresStore } from '../../../../src/stores/postgres/index.ts'
import { describeWith, Engine, POSTGRES, postgresUrl } from '../../../engines/index.ts'
import { TcpProxy } from '../../../faults/index.ts'

const RESETS = 60

describeWith(POSTGRES, 'a store in PostgreSQL whose connections break at any moment', () => {
  let engine: Engine
  let line: TcpProxy
  const escaped: unknown[] = []
  const note = (error: unknown) => escaped.push(error)

  beforeAll(async () => {
    engine = await Engine.start(POSTGRES)
    line = await TcpProxy.to(engine.port)
    process.on('unhandledRejection', note)
    process.on('uncaughtException', note)
  })

  afterAll(async () => {
    process.off('unhandledRejection', note)
    process.off('uncaughtException', note)
    await line?.close()
    await engine?.stop()
  })

  const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

  /** Endless watches and calls. They may fail, but each failure must reach its caller. */
  const use = async (store: LeaseStore, isOver: () => boolean) => {
    while (!isOver()) {
      try {
        const granted = await store.grant({ holder: 'a', ttl: 60_000, claims: [{ key: 'k' }] })
        if (granted.outcome === 'busy') continue
        const watch = store.watch({ lease: granted.lease }, () => {})
        await Promise.all([store.renew([granted.lease]), store.read({ key: 'k' })])
        watch.close()
        await store.revoke({ target: { lease: granted.lease } })
      } catch {
        await sleep(2)
      }
    }
  }

  it.each<[string, (url: string) => { client: PostgresClient; end: () => Promise<void> }]>([
    [
      'postgres.js',
      (url) => {
        const sql = postgres(url, {
          max: 4,
          fetch_types: false,
          backoff: false,
          onnotice: () => {},
        })
        return { client: sql as never, end: () => sql.end({ timeout: 1 }) }
      },
    ],
    [
      'pg',
      (url) => {
        const pool = new pg.Pool({ connectionString: url, max: 4 })
        pool.on('error', () => {})
        return { client: pool, end: () => pool.end() }
      },
    ],
  ])(
    'causes no uncaught error (%s)',
    async (name, connect) => {
      escaped.length = 0
      const { client, end } = connect(postgresUrl(line.port))
      const schema = `resets_${name.replace('.', '_')}`
      const store = await postgresStore(client, { schema, timeout: '500ms' })
      let over = false
      const users = [1, 2, 3].map(() => use(store, () => over))
      for (let at = 0; at < RESETS; at++) {
        line.reset()
        line.heal()
        await sleep(at % 25)
      }
      over = true
      await Promise.all(users)
      // It recovers by itself.
      await expect
        .poll(() => store.read({ key: 'k' }).then(({ count }) => count >= 0), { timeout: 10_000 })
        .toBe(true)
      await store.close()
      await end()
      expect(escaped).toEqual([])
    },
    60_000,
  )

  it('refuses a postgres.js client whose errors would end the process', async () => {
    const sql = postgres(postgresUrl(engine.port), { onnotice: () => {} })
    await expect(postgresStore(sql as never)).rejects.toMatchObject({
      code: 'invalid-argument',
      message: expect.stringContaining('fetch_types: false'),
    })
    await sql.end()
  })
})
