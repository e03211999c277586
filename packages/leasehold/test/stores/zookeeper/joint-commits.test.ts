import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Granted, LeaseStore } from '../../../src/port/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { describeWith, Engine, ZOOKEEPER } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'
import { claimMany, itReleasesTogether, release } from '../releases-together.ts'

describeWith(ZOOKEEPER, 'releases of one turn on ZooKeeper', () => {
  let engine: Engine
  let line: TcpProxy
  let store: LeaseStore
  let lease: string
  beforeAll(async () => {
    engine = await Engine.start(ZOOKEEPER)
    line = await TcpProxy.to(engine.port)
    store = await zookeeperStore({ servers: `127.0.0.1:${line.port}`, timeout: '30s' })
    lease = ((await store.grant({ holder: 'a', ttl: 600_000 })) as Granted).lease
  })
  afterAll(async () => {
    await store?.close()
    await line?.close()
    await engine?.stop()
  })

  itReleasesTogether(() => ({ store, lease }))

  it('are carried out though one of them was taken away, which is not known here yet', async () => {
    const scene = { store, lease }
    const [first, taken, last] = await claimMany(scene, 'taken/', 3)
    const other = await zookeeperStore({ servers: `127.0.0.1:${engine.port}` })
    line.cut('to-client')
    await other.revoke({ target: { key: taken!.key } })
    const releasing = [first!, taken!, last!].map(({ key, token }) => release(scene, key, token))
    const settling = Promise.allSettled(releasing)
    line.heal()
    const [one, refused, two] = await settling
    expect([one!.status, two!.status]).toEqual(['fulfilled', 'fulfilled'])
    expect(refused).toMatchObject({ reason: { code: 'claim-not-found' } })
    expect((await other.read({ prefix: 'taken/' })).keys).toEqual([])
    await other.close()
  })

  it('are carried out once, though their answer is lost on the way (I8)', async () => {
    const scene = { store, lease }
    const held = await claimMany(scene, 'lost/', 8)
    const before = line.repliesLost
    line.loseReplies()
    const releasing = held.map(({ key, token }, at) =>
      release(scene, key, token, at % 2 ? key : undefined),
    )
    while (line.repliesLost === before) await new Promise((resolve) => setTimeout(resolve, 5))
    line.heal()
    const answers = await Promise.all(releasing)
    expect(new Set(answers.map(({ revision }) => revision)).size).toBe(1)
    expect((await store.read({ prefix: 'lost/' })).keys).toEqual([])
    const { tenures } = await store.read({ history: 'lost/7' })
    expect(tenures).toMatchObject([{ token: held[7]!.token, end: { reason: 'released' } }])
    expect(await release(scene, held[1]!.key, held[1]!.token, held[1]!.key)).toEqual(answers[1])
  })
})
