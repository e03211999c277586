import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { describe, it, type TestContext } from 'vitest'
import {
  describeWith,
  Engine,
  POSTGRES,
  POSTGRES_CRASH,
  postgresUrl,
} from '../../../engines/index.ts'
import { Crowd, faultsOf, TcpProxy } from '../../../faults/index.ts'
import { standbyOf } from '../standby.ts'

const module = new URL('../open-postgres.ts', import.meta.url)

/** A crowd, and the proxy between it and its own server. Both end with the test. */
async function scene(library: 'pg' | 'postgres.js', { onTestFinished }: TestContext) {
  const engine = await Engine.start(POSTGRES)
  onTestFinished(() => engine.stop())
  const line = await TcpProxy.to(engine.port)
  onTestFinished(() => line.close())
  const argument = `${library} ${postgresUrl(line.port)}#crowd`
  const crowd = await Crowd.gather({ module, argument, prefix: 'faults/', ttl: 1500 })
  return { engine, line, crowd }
}

describeWith(POSTGRES, 'a crowd on PostgreSQL', () => {
  describe('under faults', { concurrent: true }, () => {
    it.for(['pg', 'postgres.js'] as const)(
      'finds no violation when connections are cut and processes are frozen and killed (%s)',
      async (library, context) => {
        const { line, crowd } = await scene(library, context)
        await crowd.allHold()
        const [first, second] = crowd.members
        first!.freeze()
        await crowd.holdings(10)
        line.cut('to-client')
        await pause(2000)
        line.heal()
        first!.thaw()
        second!.kill()
        await crowd.holdings(5)
        line.loseReplies()
        await crowd.until('a reply was lost', 10_000, () => line.repliesLost > 0)
        line.heal()
        await crowd.holdings(5)
        line.reset()
        await pause(300)
        line.heal()
        await crowd.join()
        await crowd.allHold()
        context.expect(faultsOf(await crowd.leave())).toEqual([])
      },
    )

    it('finds no violation when PostgreSQL crashes, or its first process is killed', async (context) => {
      const { engine, crowd } = await scene('pg', context)
      await crowd.holdings(10)
      await engine.kill(POSTGRES_CRASH)
      await pause(300)
      await engine.restart()
      await crowd.holdings(10)
      await engine.kill('SIGKILL')
      await restarted(engine)
      await crowd.allHold()
      context.expect(faultsOf(await crowd.leave())).toEqual([])
    })

    it('gets tokens far above the old ones from a standby that lost the last commits', async (context) => {
      const { expect, onTestFinished } = context
      const { engine, line, crowd } = await scene('pg', context)
      const replication = await TcpProxy.to(engine.port)
      onTestFinished(() => replication.close())
      const standby = await Engine.start(standbyOf(engine.port, replication.port))
      onTestFinished(() => standby.stop())
      await crowd.holdings(5)
      // The standby never receives what is committed from here on.
      replication.cut()
      await crowd.holdings(20)
      await engine.kill(POSTGRES_CRASH)
      const pool = new pg.Pool({ connectionString: postgresUrl(standby.port), max: 1 })
      await pool.query('select pg_promote()')
      const { rows } = await pool.query<{ revision: string }>('select revision from crowd.meta')
      await pool.end()
      line.retarget(standby.port)
      line.reset()
      line.heal()
      await crowd.allHold()
      const history = await crowd.leave()
      // A lease that the standby did not receive is gone, and another may hold its keys: the guarantees
      // say so. But tokens never repeat or decrease, so the resource can tell the holders apart.
      expect(
        faultsOf(history, ['two holders at once', 'an acknowledged lease that was lost']),
      ).toEqual([])
      const tokens = history.holdings.map(({ token }) => token)
      const old = tokens.filter((token) => token < 2 ** 32)
      expect(Math.max(...old)).toBeGreaterThan(Number(rows[0]!.revision))
      expect(tokens.some((token) => token > 2 ** 32)).toBe(true)
    })
  })
})

/** The processes of the killed server must notice its death first. */
async function restarted(engine: Engine): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await engine.restart()
      return
    } catch (error) {
      if (attempt === 50) throw error
      await pause(100)
    }
  }
}
