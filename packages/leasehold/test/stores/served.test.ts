import { afterAll, beforeAll, expect, it } from 'vitest'
import { Leasehold } from '../../src/index.ts'
import {
  describeWith,
  Engine,
  type EngineSpec,
  Ensemble,
  ETCD,
  POSTGRES,
  postgresUrl,
  REDIS,
  ZOOKEEPER,
} from '../engines/index.ts'
import { Served } from './served.ts'

interface Running {
  readonly address: string
  stop(): Promise<void>
}

async function one(spec: EngineSpec, address: (port: number) => string): Promise<Running> {
  const engine = await Engine.start(spec)
  return { address: address(engine.port), stop: () => engine.stop() }
}

const ENGINES: [EngineSpec, () => Promise<Running>][] = [
  [REDIS, () => one(REDIS, (port) => `redis://127.0.0.1:${port}/0?namespace=served`)],
  [POSTGRES, () => one(POSTGRES, (port) => `${postgresUrl(port)}?schema=served`)],
  [ETCD, () => one(ETCD, (port) => `etcd://127.0.0.1:${port}/served/`)],
  [
    ZOOKEEPER,
    async () => {
      const ensemble = await Ensemble.start()
      return {
        address: `zookeeper://${ensemble.servers}/served`,
        stop: async () => void (await ensemble.stop()),
      }
    },
  ],
]

for (const [spec, start] of ENGINES) {
  describeWith(spec, `two servers on one ${spec.name}`, () => {
    let engine: Running
    let servers: Served[]

    beforeAll(async () => {
      engine = await start()
      servers = await Promise.all([Served.on(engine.address), Served.on(engine.address)])
    })

    afterAll(async () => {
      await Promise.all(servers?.map((server) => server.end()) ?? [])
      await engine?.stop()
    })

    it('are one store: a release at one server grants the key to a waiter at the other', async () => {
      const [a, b] = await Promise.all(
        servers.map(({ url }, at) => Leasehold.open(url, { holder: `client ${at}` })),
      )
      const held = await a!.lock('job', { ttl: '10s' })
      const { conflict } = await b!.tryLock('job')
      expect(conflict?.holder).toBe('client 0')
      const next = b!.lock('job', { ttl: '10s' })
      await held.release()
      expect((await next).token).toBeGreaterThan(held.claimToken)
      await (await next).release()
      await a!.close()
      await b!.close()
    })

    it('lose nothing when one is killed: the leases it granted are still held', async () => {
      const [first, second] = servers
      const a = await Leasehold.open(first!.url, { holder: 'of the dead' })
      const held = await a.lock('kept', { ttl: '60s' })
      await first!.end()
      const b = await Leasehold.open(second!.url, { holder: 'of the living' })
      const { conflict } = await b.tryLock('kept')
      expect(conflict).toMatchObject({ holder: 'of the dead', token: held.claimToken })
      await b.close()
      await a.close()
    })

    it('prints the name of its store, and stops on SIGTERM', async () => {
      const [, second] = servers
      expect(second!.said[1]).toBe(`  store: ${spec.name}`)
      await second!.end('SIGTERM')
    })
  })
}
