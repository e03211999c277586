import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { postgresLog } from '../../src/logs/postgres/index.ts'
import { redisLog } from '../../src/logs/redis/index.ts'
import type { LeaseholdError } from '../../src/port/index.ts'
import { postgresMigration, postgresStore } from '../../src/stores/postgres/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { describeWith, Engine, POSTGRES_UNSYNCED, REDIS } from '../engines/index.ts'
import { postgresPool } from './postgres/postgres-pool.ts'

/** Both forms on one engine, each opened by the name of its namespace or schema. */
interface Forms {
  native(name: string): Promise<{ close(): Promise<void> }>
  log(name: string): Promise<{ close(): Promise<void> }>
}

/** The error must name the place, what was found, and the fix. */
function itRefusesTheOther(
  forms: () => Forms,
  place: string,
  marks: { native: string; log: string },
) {
  const refusal = (name: string, found: string, mark: string) => ({
    code: 'invalid-argument',
    message: expect.stringMatching(
      new RegExp(`use another ${place}.*the ${place} ${name} holds ${found}.*${mark}`),
    ),
  })

  it('keeps a store and a log apart, and refuses to open one as the other', async () => {
    const { native, log } = forms()
    const opened = [await native('a'), await log('b'), await native('a'), await log('b')]
    await expect(log('a')).rejects.toMatchObject(
      refusal('a', 'a store of \\w+, form=native', marks.native),
    )
    await expect(native('b')).rejects.toMatchObject(
      refusal('b', 'a log of \\w+, form=log', marks.log),
    )
    for (const each of opened) await each.close()
  }, 60_000)

  it('lets one form win if both are opened together', async () => {
    const { native, log } = forms()
    const settled = await Promise.allSettled([native('c'), log('c'), native('c'), log('c')])
    const codes = settled.map((each) =>
      each.status === 'fulfilled' ? 'open' : (each.reason as LeaseholdError).code,
    )
    expect(codes.toSorted()).toEqual(['invalid-argument', 'invalid-argument', 'open', 'open'])
    expect(codes[0]).toBe(codes[2])
    for (const each of settled) if (each.status === 'fulfilled') await each.value.close()
  }, 60_000)
}

describeWith(REDIS, 'the two forms in one Redis', () => {
  let engine: Engine
  let client: Redis
  beforeAll(async () => {
    engine = await Engine.start(REDIS)
    client = new Redis({ port: engine.port, host: '127.0.0.1' })
  }, 60_000)
  afterAll(async () => {
    client?.disconnect()
    await engine?.stop()
  })

  const forms = () => ({
    native: (namespace: string) => redisStore(client, { namespace }),
    log: (namespace: string) => redisLog(client, { namespace }),
  })
  itRefusesTheOther(forms, 'namespace', { native: '{a}:meta', log: '{b}:entries' })

  it('have no key in common', async () => {
    const store = await redisStore(client, { namespace: 'd' })
    await store.grant({ holder: 'h', ttl: 60_000, claims: [{ key: 'k' }] })
    const log = await redisLog(client, { namespace: 'e' })
    await log.append(Buffer.from('x'))
    await log.saveSnapshot({ position: 1, chunks: [Buffer.from('x')] })
    const namesIn = async (namespace: string) =>
      (await client.keys(`{${namespace}}:*`)).map((key) => key.slice(4))
    const ofLog = await namesIn('e')
    expect(ofLog.length).toBeGreaterThan(2)
    expect((await namesIn('d')).filter((name) => ofLog.includes(name))).toEqual([])
    await store.close()
    await log.close()
  })

  it('recognise a log of which only the epoch is left', async () => {
    await (await redisLog(client, { namespace: 'f' })).close()
    await client.del('{f}:entries')
    await expect(redisStore(client, { namespace: 'f' })).rejects.toMatchObject({
      code: 'invalid-argument',
    })
  })
})

describeWith(POSTGRES_UNSYNCED, 'the two forms in one PostgreSQL', () => {
  const pool = postgresPool()

  const forms = () => ({
    native: (schema: string) => postgresStore(pool(), { schema, timeout: 20_000 }),
    log: (schema: string) => postgresLog(pool(), { schema, timeout: 20_000 }),
  })
  itRefusesTheOther(forms, 'schema', { native: 'a.heartbeats', log: 'b.entry' })

  it('are distinguished by the printed migration, too', async () => {
    await (await postgresLog(pool(), { schema: 'd' })).close()
    await expect(pool().query(postgresMigration({ schema: 'd' }))).rejects.toThrowError(
      'the schema d holds a log of postgresLog, form=log: the table d.entry',
    )
  })
})
