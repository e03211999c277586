import type pg from 'pg'
import { afterEach, expect, it } from 'vitest'
import type { Log } from '../../../src/log/index.ts'
import { postgresLog } from '../../../src/logs/postgres/index.ts'
import type { PostgresClient } from '../../../src/stores/postgres/client.ts'
import { Recorder } from '../../../src/testing/log-conformance/recorder.ts'
import { describeWith, POSTGRES_UNSYNCED } from '../../engines/index.ts'
import { postgresPool } from './postgres-pool.ts'

describeWith(POSTGRES_UNSYNCED, 'a follower of the PostgreSQL log', () => {
  const pool = postgresPool()
  const logs: Log[] = []
  // A follower that a failed test left open would keep the pool from ending.
  afterEach(async () => {
    for (const log of logs.splice(0)) await log.close()
  })

  /** Nothing is polled: each entry was delivered by its own append or by a notification. */
  const open = async (schema: string, client: PostgresClient = pool()) => {
    const log = await postgresLog(client, { schema, poll: '10m', timeout: 20_000 })
    logs.push(log)
    return log
  }

  it("does not read its own process's entries", async () => {
    const { client, counts } = counting(pool())
    const log = await open('own', client)
    const follower = new Recorder(log, 0, 15_000)
    // Until it listens, a follower must read.
    const listens = `select from pg_stat_activity where query = 'listen "own_entries"'`
    await expect.poll(async () => (await pool().query(listens)).rowCount).toBe(1)
    await log.append(Buffer.from('1'))
    await follower.until(1)
    const before = counts.read
    for (let at = 2; at <= 100; at++) await log.append(Buffer.from(`${at}`))
    await follower.until(100)
    expect(follower.texts).toEqual(Array.from({ length: 100 }, (_, at) => `${at + 1}`))
    expect(counts.append).toBe(100)
    // The read that begins when it listens may still be under way.
    expect(counts.read).toBeLessThanOrEqual(before + 1)
  })

  it('reads once for an entry of another process, and not for a known one', async () => {
    const { client, counts } = counting(pool())
    const log = await open('others', client)
    const other = await open('others')
    const follower = new Recorder(log, 0, 15_000)
    await other.append(Buffer.from('a'))
    await follower.until(1)
    await log.append(Buffer.from('b'))
    await follower.until(2)
    const before = counts.read
    for (const old of ['1 x', '2 x']) await pool().query(`notify others_entries, '${old}'`)
    await other.append(Buffer.from('c'))
    await follower.until(3)
    expect(follower.texts).toEqual(['a', 'b', 'c'])
    expect(counts.read).toBe(before + 1)
  })

  it('gets its own entry whose append was not answered', async () => {
    const { client, counts } = counting(pool())
    const log = await open('unanswered', client)
    const follower = new Recorder(log, 0, 15_000)
    await log.append(Buffer.from('a'))
    await follower.until(1)
    counts.loses = true
    await expect(log.append(Buffer.from('b'))).rejects.toMatchObject({ code: 'unknown-outcome' })
    await follower.until(2)
    expect(follower.texts).toEqual(['a', 'b'])
  })

  it('ends if the log was created again, and gets no entry of the new one', async () => {
    const log = await open('anew')
    const follower = new Recorder(log, await log.append(Buffer.from('a')), 15_000)
    // It listens when it has the entry of another process.
    await (await open('anew')).append(Buffer.from('b'))
    await follower.until(1)
    await makeAnew('anew')
    await expect(log.append(Buffer.from('c'))).rejects.toMatchObject({ code: 'unknown-outcome' })
    expect(await follower.untilEnded()).toEqual({ cause: 'ahead', tail: 2 })
    expect(follower.texts).toEqual(['b'])
  })

  it('appends to the new log, although a late answer belongs to the old one', async () => {
    const { client, counts } = counting(pool())
    const log = await open('late', client)
    let answer = () => {}
    const isAsked = new Promise<void>((asked) => {
      counts.reading = () => {
        counts.reading = undefined
        asked()
        return new Promise((resolve) => {
          answer = resolve
        })
      }
    })
    const slow = new Recorder(log, 0, 15_000)
    await isAsked
    await makeAnew('late')
    expect(await new Recorder(log, 0, 15_000).untilEnded()).toEqual({ cause: 'ahead', tail: 2 })
    const follower = new Recorder(log, 0, 15_000)
    await follower.until(2)
    answer()
    expect(await slow.untilEnded()).toMatchObject({ cause: 'ahead' })
    expect(await log.append(Buffer.from('z'))).toBe(3)
    await follower.until(3)
    expect(follower.texts).toEqual(['x', 'y', 'z'])
  })

  /** In one transaction, because a follower may be reading: it must find the one log or the other. */
  const makeAnew = (schema: string) =>
    pool().query(`
      delete from ${schema}.entry; delete from ${schema}.head;
      insert into ${schema}.head values (1, 'another epoch', 2, 0);
      insert into ${schema}.entry values (1, 'x'), (2, 'y')`)
})

interface Counts {
  append: number
  read: number
  /** Whether the answers of appends are lost. */
  loses: boolean
  /** The answer of a read waits for this. */
  reading?: (() => Promise<void>) | undefined
}

/** The pool, with the number of its appends and reads. */
function counting(pool: pg.Pool) {
  const counts: Counts = { append: 0, read: 0, loses: false }
  const query = async (statement: { name?: string }) => {
    const name = statement.name?.split('.')[1]
    if (name === 'append' || name === 'read') counts[name]++
    const answer = await pool.query(statement as pg.QueryConfig)
    if (name === 'append' && counts.loses) throw new Error('the connection broke')
    if (name === 'read') await counts.reading?.()
    return answer
  }
  const client = { query, connect: () => pool.connect(), totalCount: 0 } as PostgresClient
  return { client, counts }
}
