import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Granted, LeaseStore } from '../../../src/port/index.ts'
import { type PostgresClient, postgresStore } from '../../../src/stores/postgres/index.ts'
import { Ear } from '../../../src/testing/conformance/ear.ts'
import { describeWith, Engine, POSTGRES, postgresUrl } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'

async function grant(store: LeaseStore, ttl = 60_000): Promise<Granted> {
  return (await store.grant({ holder: 'a', ttl })) as Granted
}

describeWith(POSTGRES, 'the connection on which PostgreSQL tells of changes', () => {
  let engine: Engine
  let line: TcpProxy
  let pool: pg.Pool

  beforeAll(async () => {
    engine = await Engine.start(POSTGRES)
    line = await TcpProxy.to(engine.port)
    pool = new pg.Pool({ connectionString: postgresUrl(line.port), max: 10 })
    pool.on('error', () => {})
  })

  afterAll(async () => {
    await pool?.end()
    await line?.close()
    await engine?.stop()
  })

  /** The pool, where something happens whenever a client is about to listen. */
  const before = (listening: () => void) => {
    const connect = async () => {
      const client = await pool.connect()
      const query = client.query.bind(client) as (text: string) => Promise<unknown>
      const first = (text: string) => {
        if (text.startsWith('listen')) listening()
        return query(text)
      }
      return Object.assign(client, { query: first })
    }
    const all = { query: pool.query.bind(pool), connect, totalCount: 0 }
    return all as unknown as PostgresClient
  }

  it('is not made again for a store that could not be opened', async () => {
    let breaks = 0
    const broken = before(() => {
      if (++breaks === 1) line.reset()
      line.heal()
    })
    const opening = postgresStore(broken, { schema: 'unopened' })
    await expect(opening).rejects.toMatchObject({ code: 'unknown-outcome' })
    await expect(opening).rejects.toThrow(/terminated unexpectedly|ECONNRESET/)
    await sleep(600)
    expect(pool.totalCount - pool.idleCount).toBe(0)
  })
})
