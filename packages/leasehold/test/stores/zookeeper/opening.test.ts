import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { describeWith, Ensemble, ZOOKEEPER } from '../../engines/index.ts'

describe('opening a ZooKeeper store', () => {
  it.each([
    [{ servers: '' }, /servers/],
    [{ servers: 'zk1:0' }, /host:port/],
    [{ servers: 'http://zk1' }, /host:port/],
    [{ servers: [] }, /zk1:2181/],
    [{ servers: 'zk1', root: 'leasehold' }, /root.*\/leasehold/],
    [{ servers: 'zk1', root: '/a//b' }, /root\b/],
    [{ servers: 'zk1', timeout: 0 }, /timeout.*5s/],
    [{ servers: 'zk1', auth: { scheme: 'digest' } }, /credentials/],
    [{ servers: 'zk1', connect: 5 }, /connect.*socket/],
  ])('is refused with %j, and says how to put it right', async (options, says) => {
    const opening = zookeeperStore(options as Parameters<typeof zookeeperStore>[0])
    await expect(opening).rejects.toMatchObject({
      code: 'invalid-argument',
      message: expect.stringMatching(says),
    })
  })

  it('is refused where nobody answers, and says where it looked', async () => {
    const mute = createServer(() => {}).listen(0, '127.0.0.1')
    await once(mute, 'listening')
    const { port } = mute.address() as { port: number }
    const opening = zookeeperStore({ servers: `127.0.0.1:${port}`, timeout: 300 })
    await expect(opening).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining(`127.0.0.1:${port}`),
    })
    mute.close()
  })
})

describeWith(ZOOKEEPER, 'a ZooKeeper store whose nodes are its own', () => {
  let ensemble: Ensemble

  beforeAll(async () => {
    ensemble = await Ensemble.start()
  })

  afterAll(() => ensemble?.stop())

  it('lets in who is authenticated in the same way, and nobody else', async () => {
    const { servers } = ensemble
    const auth = { scheme: 'digest', credentials: 'leasehold:secret' }
    const own = await zookeeperStore({ servers, auth })
    const granted = await own.grant({ holder: 'alice', ttl: 5000, claims: [{ key: 'key' }] })
    expect(granted.outcome).toBe('granted')
    const same = await zookeeperStore({ servers, auth })
    expect((await same.read({ key: 'key' })).count).toBe(1)
    await expect(zookeeperStore({ servers })).rejects.toMatchObject({ code: 'forbidden' })
    const other = { scheme: 'digest', credentials: 'leasehold:guess' }
    await expect(zookeeperStore({ servers, auth: other })).rejects.toMatchObject({
      code: 'forbidden',
    })
    for (const store of [own, same]) await store.close()
  })
})
