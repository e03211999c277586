import { afterAll, expect, it } from 'vitest'
import { Leasehold } from '../../src/index.ts'
import {
  describeWith,
  Engine,
  type EngineSpec,
  POSTGRES_UNSYNCED,
  postgresUrl,
  REDIS,
  redisSentinel,
} from '../engines/index.ts'
import { Served } from './served.ts'

/** Starts an engine, and returns the address of a store there without its form. */
type Start = (start: (spec: EngineSpec) => Promise<Engine>) => Promise<string>

const ENGINES: readonly [EngineSpec, string, 'log' | 'native', Start][] = [
  [
    REDIS,
    'Redis',
    'native',
    async (start) => `redis://127.0.0.1:${(await start(REDIS)).port}/0?namespace=one`,
  ],
  [
    REDIS,
    'Redis by Sentinel',
    'native',
    async (start) => {
      const sentinel = await start(redisSentinel((await start(REDIS)).port))
      return `redis+sentinel://127.0.0.1:${sentinel.port}/main?namespace=one`
    },
  ],
  [
    POSTGRES_UNSYNCED,
    'PostgreSQL',
    'log',
    async (start) => `${postgresUrl((await start(POSTGRES_UNSYNCED)).port)}?schema=one`,
  ],
]

for (const [spec, name, defaultForm, startOn] of ENGINES) {
  describeWith(spec, `a server on ${name}`, () => {
    const engines: Engine[] = []
    let server: Served | undefined
    afterAll(async () => {
      await server?.end()
      for (const engine of engines) await engine.stop()
    })

    it('serves the form in its address, or the default, and refuses data of the other form', async () => {
      const address = await startOn(async (wanted) => {
        const engine = await Engine.start(wanted)
        engines.push(engine)
        return engine
      })
      for (const [form, other] of [
        ['log', 'native'],
        ['native', 'log'],
      ] as const) {
        const place = address.replace(/one$/, `of_${form}`)
        server = await Served.on(`${place}&form=${form}`)
        const client = await Leasehold.open(server.url)
        const lock = await client.lock('job', { ttl: '30s' })
        expect(lock.token).toBeGreaterThan(0)
        await lock.release()
        expect((await client.tryLock('job')).lock?.held).toBe(true)
        await client.close()
        await expect(Served.on(`${place}&form=${other}`)).rejects.toThrowError(
          new RegExp(`of_${form} holds a \\w+ of \\w+, form=${form}`),
        )
        await server.end('SIGTERM')
      }
      const withoutSettings = address.replace(/\?.*/, '')
      server = await Served.on(withoutSettings)
      await server.end('SIGTERM')
      const other = defaultForm === 'log' ? 'native' : 'log'
      await expect(Served.on(`${withoutSettings}?form=${other}`)).rejects.toThrowError(
        new RegExp(`leasehold.* holds a \\w+ of \\w+, form=${defaultForm}`),
      )
      await expect(Served.on(`${address}&form=table`)).rejects.toThrowError(
        'form in the store address is "table": use native or log',
      )
    }, 120_000)
  })
}
