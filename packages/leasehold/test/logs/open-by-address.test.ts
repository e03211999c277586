import { afterAll, expect, it } from 'vitest'
import { Leasehold } from '../../src/index.ts'
import { describeWith, Engine, type EngineSpec, ETCD, ZOOKEEPER } from '../engines/index.ts'

const ENGINES: [EngineSpec, string][] = [
  [ETCD, 'etcd'],
  [ZOOKEEPER, 'zookeeper'],
]

for (const [spec, scheme] of ENGINES) {
  describeWith(spec, `a client that is opened with the address of ${spec.name}`, () => {
    let engine: Engine | undefined
    afterAll(() => engine?.stop())

    it('shares locks with others at the same path, and with no others', async () => {
      engine = await Engine.start(spec)
      const open = (path: string) =>
        Leasehold.open(`${scheme}://127.0.0.1:${engine!.port}/${path}`, { callTimeout: '20s' })
      const [one, two, other] = [await open('a'), await open('a'), await open('b')]
      const lock = await one.lock('key', { ttl: '30s' })
      expect((await two.tryLock('key')).conflict?.token).toBe(lock.claimToken)
      expect((await other.tryLock('key')).lock?.held).toBe(true)
      for (const each of [one, two, other]) await each.close()
    }, 90_000)
  })
}
