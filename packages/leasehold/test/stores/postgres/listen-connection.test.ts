import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Clock, systemClock } from '../../../src/port/index.ts'
import { type PostgresClient, postgresStore } from '../../../src/stores/postgres/index.ts'
import { describeWith, Engine, POSTGRES, postgresUrl } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'

/** A clock that can run timers early, and counts those that keep the process running. */
class HastyClock implements Clock {
  readonly #waiting = new Map<() => void, boolean>()

  now = () => systemClock.now()
  asleep = () => systemClock.asleep()
  defer = (run: () => void) => systemClock.defer(run)

  get keeping(): number {
    return [...this.#waiting.values()].filter(Boolean).length
  }

  timer(time: number, run: () => void, keepAlive = false) {
    const once = () => {
      if (this.#waiting.delete(once)) run()
    }
    this.#waiting.set(once, keepAlive)
    const timer = systemClock.timer(time, once, keepAlive)
    return {
      cancel: () => {
        this.#waiting.delete(once)
        timer.cancel()
      },
    }
  }

  runAll(): void {
    for (const run of [...this.#waiting.keys()]) run()
  }
}

describeWith(POSTGRES, 'the connection for notifications of PostgreSQL', () => {
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

  /** The pool, with a callback for whenever a client is about to listen. */
  const before = (listening: (client: { processID: number }) => void) => {
    const connect = async () => {
      const client = await pool.connect()
      const query = client.query.bind(client) as (...given: unknown[]) => unknown
      const first = (...given: unknown[]) => {
        if (JSON.stringify(given[0])?.includes('listen ')) listening(client as never)
        return query(...given)
      }
      return Object.assign(client, { query: first })
    }
    const all = { query: pool.query.bind(pool), connect, totalCount: 0 }
    return all as unknown as PostgresClient
  }

  it('is not opened again for a store that could not be opened', async () => {
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
  it('is opened again if an attempt to open it was never answered', async () => {
    const attempts: number[] = []
    const stopping = before((client) => {
      if (attempts.push(client.processID) === 2) process.kill(client.processID, 'SIGSTOP')
    })
    const store = await postgresStore(stopping, { schema: 'silent', timeout: 500 })
    line.reset()
    line.heal()
    await expect.poll(() => attempts.length, { timeout: 5000 }).toBe(3)
    process.kill(attempts[1]!, 'SIGCONT')
    await store.close()
  })

  it('does not keep the process running if it was being checked when the store was closed', async () => {
    const direct = new pg.Pool({ connectionString: postgresUrl(engine.port), max: 4 })
    const clock = new HastyClock()
    const store = await postgresStore(direct, { schema: 'tried', listen: pool, clock })
    line.cut()
    clock.runAll()
    await store.close()
    await expect.poll(() => clock.keeping).toBe(0)
    line.heal()
    await direct.end()
  })
})
