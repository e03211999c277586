import { afterAll, expect, it } from 'vitest'
import { Leasehold } from '../../src/index.ts'
import {
  CONSUL,
  describeWith,
  Engine,
  type EngineSpec,
  ETCD,
  NATS,
  POSTGRES,
  postgresUrl,
  REDIS,
  ZOOKEEPER,
} from '../engines/index.ts'

const host = (port: number) => `127.0.0.1:${port}`

/** Each with the address of its part `a` or `b`. */
const ENGINES: [EngineSpec, string, (port: number, part: string) => string][] = [
  [ETCD, 'etcd', (port, part) => `etcd://${host(port)}/${part}`],
  [CONSUL, 'consul', (port, part) => `consul://${host(port)}/${part}`],
  [ZOOKEEPER, 'zookeeper', (port, part) => `zookeeper://${host(port)}/${part}`],
  [REDIS, 'redis', (port, part) => `redis://${host(port)}?namespace=${part}`],
  [REDIS, 'redis as a log', (port, part) => `redis://${host(port)}?form=log&namespace=${part}`],
  [POSTGRES, 'postgres', (port, part) => `${postgresUrl(port)}?schema=${part}`],
  [POSTGRES, 'postgres', (port, part) => `${postgresUrl(port)}?form=native&schema=${part}`],
  [NATS, 'nats', (port, part) => `nats://${host(port)}/${part}`],
]

for (const [spec, name, address] of ENGINES) {
  describeWith(spec, `a client that is opened with the address of ${name}`, () => {
    let engine: Engine | undefined
    afterAll(() => engine?.stop())

    it('shares locks with others at the same path, and with no others', async () => {
      engine = await Engine.start(spec)
      const open = (part: string) => Leasehold.open(address(engine!.port, part), { timeout: '20s' })
      const [one, two, other] = [await open('a'), await open('a'), await open('b')]
      const lock = await one.lock('key', { ttl: '30s' })
      expect((await two.tryLock('key')).conflict?.token).toBe(lock.claimToken)
      expect((await other.tryLock('key')).lock?.held).toBe(true)
      for (const each of [one, two, other]) await each.close()
    }, 90_000)
  })
}
