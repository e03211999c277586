import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Granted, GrantRequest, LeaseStore, Notice } from '../../../src/port/index.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { describeWith, Engine, POSTGRES, POSTGRES_CRASH, postgresUrl } from '../../engines/index.ts'
import { MovedPostgres } from './moved-clock.ts'

async function grant(store: LeaseStore, spec: Partial<GrantRequest> = {}): Promise<Granted> {
  const granted = await store.grant({ holder: 'a', ttl: 600_000, ...spec })
  expect(granted.outcome).toBe('granted')
  return granted as Granted
}

const isGone = (store: LeaseStore, lease: string) =>
  new Promise<void>((resolve) => {
    store.watch({ lease }, ({ type }) => {
      if (type === 'gone') resolve()
    })
  })

describeWith(POSTGRES, 'the maintenance by the PostgreSQL store', () => {
  let engine: Engine
  let pool: pg.Pool

  beforeAll(async () => {
    engine = await Engine.start(POSTGRES)
    pool = new pg.Pool({ connectionString: postgresUrl(engine.port), max: 40 })
    pool.on('error', () => {})
  })

  afterAll(async () => {
    await pool?.end()
    await engine?.stop()
  })

  const number = async (text: string) =>
    Number(Object.values((await pool.query(text)).rows[0] as object)[0])

  it('renews in place, without growing its table', async () => {
    const store = await postgresStore(pool, { schema: 'hot' })
    const granted = await Promise.all(Array.from({ length: 2000 }, () => grant(store)))
    const leases = granted.map(({ lease }) => lease)
    const size = () => number(`select pg_total_relation_size('hot.heartbeats')`)
    for (let round = 0; round < 5; round++) await store.renew(leases)
    const before = await size()
    for (let round = 0; round < 30; round++) await store.renew(leases)
    expect(await size()).toBeLessThanOrEqual(before)
    let updated = 0
    let hot = 0
    // The server publishes its counts a second later.
    while (updated < 70_000) {
      const { rows } = await pool.query(`select n_tup_upd::int as updated, n_tup_hot_upd::int as hot
        from pg_stat_user_tables where schemaname = 'hot' and relname = 'heartbeats'`)
      ;({ updated, hot } = rows[0] as { updated: number; hot: number })
    }
    expect(hot / updated).toBeGreaterThan(0.99)
    await store.close()
  })

  it('deletes what it need not keep, and keeps the rest', async () => {
    const few = { events: 500, history: 500, requests: 500, ended: 500 }
    const store = await postgresStore(pool, { schema: 'tidy', limits: few })
    let last = { lease: '', request: '' }
    for (let round = 0; round < 15; round++) {
      const calls = Array.from({ length: 200 }, async (_, at) => {
        const request = `${round}/${at}`
        const { lease } = await grant(store, { claims: [{ key: `k${at}` }], request })
        await store.revoke({ target: { lease }, request: `${request} over` })
        last = { lease, request }
      })
      await Promise.all(calls)
    }
    const rows = async (table: string) => number(`select count(*) from tidy.${table}`)
    // 6,000 events and requests and 3,000 ended leases were made. The last deletion may still be
    // in progress.
    await expect.poll(() => rows('events')).toBeLessThan(500 + 2300)
    await expect.poll(() => rows('requests')).toBeLessThan(500 + 2300)
    await expect.poll(() => rows('ended')).toBeLessThan(500 + 2300)
    await expect.poll(() => rows('heartbeats')).toBeLessThan(500 + 2300)
    for (const table of ['events', 'requests', 'ended']) {
      expect(await rows(table)).toBeGreaterThanOrEqual(500)
    }
    expect(await store.renew([last.lease])).toMatchObject({
      lost: [{ end: { reason: 'revoked' } }],
    })
    const again = await grant(store, { request: last.request })
    expect(again.lease).toBe(last.lease)
    expect(await number('select complete_after from tidy.meta')).toBeGreaterThan(0)
    await store.close()
  })

  it("continues if the server's clock is set back, and ends no lease early", async () => {
    const moved = await MovedPostgres.make(pool, 'back')
    const { store } = moved
    const first = await grant(store, { ttl: 1000, claims: [{ key: 'a' }] })
    const { until } = (await store.read({ key: 'a' })).claims[0]!
    await moved.set(until - 1000 - 3_600_000)
    const second = await grant(store, { ttl: 1000, claims: [{ key: 'b' }] })
    const later = (await store.read({ key: 'b' })).claims[0]!
    expect(later.claimedAt).toBeGreaterThanOrEqual(until - 1000)
    await store.renew([first.lease])
    expect((await store.read({ lease: first.lease })).lease!.until).toBeGreaterThanOrEqual(until)
    await moved.advance(999)
    const third = await grant(store)
    const busy = await store.claim({ lease: third.lease, claims: [{ key: 'a' }], ifFree: true })
    expect(busy.outcome).toBe('busy')
    await moved.advance(1)
    const both = [{ key: 'a' }, { key: 'b' }]
    const free = await store.claim({ lease: third.lease, claims: both, ifFree: true })
    expect(free.outcome).toBe('claimed')
    expect(await store.renew([second.lease])).toMatchObject({
      lost: [{ end: { reason: 'expired' } }],
    })
    await store.close()
  })

  it("promotes no claim whose lease was due before the holder's, however late it checks", async () => {
    const moved = await MovedPostgres.make(pool, 'late')
    const { store } = moved
    const holder = await grant(store, { ttl: 1000, claims: [{ key: 'a' }] })
    await grant(store, { ttl: 1500, claims: [{ key: 'a' }] })
    await moved.advance(900)
    await store.renew([holder.lease])
    await moved.set((await number('select now from late.moved')) + 1100)
    await pool.query("update late.meta set sweeper = 'test'")
    await pool.query("select late.sweep(1000, 'test', 10, 0)")
    const { tenures } = await store.read({ history: 'a' })
    expect(tenures).toMatchObject([{ lease: holder.lease, end: { reason: 'expired' } }])
    await store.close()
  })

  it('causes no deadlock between renewals, claims and ends of the same leases', async () => {
    const stores = await Promise.all([0, 1].map(() => postgresStore(pool, { schema: 'storm' })))
    const [one, two] = stores as [LeaseStore, LeaseStore]
    const granted = await Promise.all(Array.from({ length: 60 }, () => grant(one, { ttl: 60_000 })))
    const leases = granted.map(({ lease }) => lease)
    const keys = Array.from({ length: 8 }, (_, at) => ({ key: `k${at}` }))
    const started = performance.now()
    const renewing = stores.map(async (store, at) => {
      for (let round = 0; round < 40; round++) {
        await store.renew(at === 0 ? leases : [...leases].reverse())
      }
    })
    const claiming = leases.map(async (lease, at) => {
      const [store, order] = at % 2 === 0 ? [one, keys] : [two, [...keys].reverse()]
      await store.claim({ lease, claims: order })
      await store.revoke({ target: { lease } })
    })
    await Promise.all([...renewing, ...claiming])
    // The server detects a deadlock after one second.
    expect(performance.now() - started).toBeLessThan(20_000)
    expect((await one.read({ key: 'k0' })).count).toBe(0)
    const deadlocks = `select deadlocks from pg_stat_database where datname = 'postgres'`
    expect(await number(deadlocks)).toBe(0)
    await Promise.all(stores.map((store) => store.close()))
  })

  it('never expires a lease that is renewed at the moment of its deadline', async () => {
    const moved = await MovedPostgres.make(pool, 'race')
    const { store } = moved
    const { lease } = await grant(store, { ttl: 1000, claims: [{ key: 'a' }] })
    const client = await pool.connect()
    await client.query('begin')
    await client.query(`select race.renew('{${lease}}')`)
    await moved.advance(0)
    await moved.set((await number('select now from race.moved')) + 5000)
    const heir = await grant(store)
    const during = await store.claim({ lease: heir.lease, claims: [{ key: 'a' }], ifFree: true })
    expect(during.outcome).toBe('busy')
    await client.query('commit')
    client.release()
    const after = await store.claim({ lease: heir.lease, claims: [{ key: 'a' }], ifFree: true })
    expect(after.outcome).toBe('claimed')
    expect(await store.renew([lease])).toMatchObject({ lost: [{ lease }] })
    await store.close()
  })

  it('does not block others while a large answer is read slowly, and returns it complete', async () => {
    const store = await postgresStore(pool, { schema: 'large' })
    const value = 'x'.repeat(60_000)
    const keys = Array.from({ length: 100 }, (_, at) => ({ key: `k${at}`, value }))
    await grant(store, { claims: keys })
    const { rows } = await pool.query(
      `select length(large.calls(1000, '{10,1000,10,10,100,10}', $1)::text) as size`,
      [
        JSON.stringify([
          [
            'grant',
            null,
            'b',
            60_000,
            0,
            60_000,
            null,
            null,
            true,
            keys.map(({ key }) => [key, -1, null]),
          ],
        ]),
      ],
    )
    expect(rows[0].size).toBeLessThan(4096)
    for (const request of [undefined, 'r', 'r']) {
      const busy = await store.grant({
        holder: 'b',
        ttl: 60_000,
        claims: keys,
        ifFree: true,
        request,
      })
      expect(busy.ahead.map(({ first }) => first.value)).toEqual(keys.map(() => value))
    }
    await store.close()
  })

  it('takes over the deadlines from a process that died', async () => {
    const store = await postgresStore(pool, { schema: 'duty' })
    await pool.query(`update duty.meta set sweeper = 'a process that died'`)
    const { lease } = await grant(store, { ttl: 200 })
    const started = performance.now()
    await isGone(store, lease)
    expect(performance.now() - started).toBeLessThan(200 + 1000 + 3000)
    expect(
      await number(`select count(*) from duty.meta where sweeper = 'a process that died'`),
    ).toBe(0)
    await store.close()
  })

  it('receives notifications again, and has missed nothing, after its connections were ended', async () => {
    const store = await postgresStore(pool, { schema: 'ended' })
    const heard: string[] = []
    const gone = new Promise<void>((resolve) => {
      store.watch({ prefix: '' }, (notice) => {
        if (notice.type === 'events') heard.push(...notice.events.map(({ key }) => key))
        if (heard.includes('last')) resolve()
      })
    })
    await grant(store, { claims: [{ key: 'first' }] })
    const end = `select count(pg_terminate_backend(pid)) from pg_stat_activity
      where pid <> pg_backend_pid() and datname = 'postgres' and backend_type = 'client backend'`
    await pool.query(end)
    const key = 'last'
    await expect
      .poll(() =>
        store.grant({ holder: 'a', ttl: 60_000, claims: [{ key }] }).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true)
    await gone
    expect(new Set(heard)).toEqual(new Set(['first', 'last']))
    const waiting = await grant(store)
    const turn = new Promise<void>((resolve) => {
      store.watch({ lease: waiting.lease }, ({ type }) => {
        if (type === 'holds') resolve()
      })
    })
    await store.claim({ lease: waiting.lease, claims: [{ key }] })
    await store.revoke({ target: { key, token: (await store.read({ key })).claims[0]!.token } })
    await turn
    await store.close()
  })

  it('reports the revision in which a claim held all its keys, even if one was removed again', async () => {
    const store = await postgresStore(pool, { schema: 'parts' })
    const [first, last] = [
      await grant(store, { claims: [{ key: 'first' }] }),
      await grant(store, { claims: [{ key: 'last' }] }),
    ]
    const { lease, token } = await grant(store, { claims: [{ key: 'first' }, { key: 'last' }] })
    const heard: Notice[] = []
    store.watch({ lease }, (notice) => heard.push(notice))
    await expect.poll(() => heard.length).toBe(1)
    // All in one statement, so that watches are notified when all of it is done.
    const [, whole] = await Promise.all([
      store.release({ lease: first.lease, keys: ['first'], token: first.token }),
      store.release({ lease: last.lease, keys: ['last'], token: last.token }),
      store.release({ lease, keys: ['last'], token }),
    ])
    const holds = { type: 'holds', revision: whole.revision, token }
    await expect.poll(() => heard.slice(1)).toEqual([holds])
    await store.close()
  })

  describe('across a crash', () => {
    it('keeps what it answered, recognises a repeated request, and gives each lease its full ttl again', async () => {
      const store = await postgresStore(pool, { schema: 'crash' })
      const kept = await grant(store, { ttl: 1000, claims: [{ key: 'a' }], request: 'r1' })
      await engine.kill(POSTGRES_CRASH)
      await engine.restart()
      const again = await expect
        .poll(() => store.grant({ holder: 'a', ttl: 1000, request: 'r1' }).catch(() => undefined))
        .toMatchObject({ outcome: 'granted', lease: kept.lease, token: kept.token })
        .then(() => store.grant({ holder: 'a', ttl: 1000, request: 'r1' }))
      expect(again).toMatchObject({ lease: kept.lease })
      const other = await grant(store, { claims: [{ key: 'a' }] })
      expect(other.token).toBeGreaterThan(kept.token)
      await store.close()
    })
  })
})
