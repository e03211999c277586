import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Claimed, Granted, LeaseStore } from '../../../src/port/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { describeWith, Engine, ZOOKEEPER } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'
import { pause, until } from './raw-session.ts'

/** A request to ZooKeeper has less than 1 MB, and nothing may depend on fitting into it but a claim. */
describeWith(ZOOKEEPER, 'what is large in ZooKeeper', () => {
  let engine: Engine
  const open: LeaseStore[] = []
  // Each has a server of its own: all that is large stays in the memory of a server, which has little.
  beforeEach(async () => {
    engine = await Engine.start(ZOOKEEPER)
  })
  afterEach(async () => {
    for (const store of open.splice(0)) await store.close()
    await engine?.stop()
  })

  const store = async (root: string) => {
    const opened = await zookeeperStore({ servers: `127.0.0.1:${engine.port}`, root })
    open.push(opened)
    return opened
  }

  const longNames = (number: number) =>
    Array.from({ length: 250 }, (_, at) => `${number}-${at}-`.padEnd(400, 'k'))

  const holdLongNames = async (in_: LeaseStore, ttl: number) => {
    const { lease } = (await in_.grant({ holder: 'a', ttl })) as Granted
    for (let number = 0; number < 4; number++) {
      await in_.claim({ lease, claims: longNames(number).map((key) => ({ key })) })
    }
    return lease
  }

  it('is released beside others of the same turn', async () => {
    const own = await store('/together')
    const { lease } = (await own.grant({ holder: 'a', ttl: 600_000 })) as Granted
    const tokens: number[] = []
    // Control characters take six bytes each where they are written.
    for (let at = 0; at < 20; at++) {
      const value = (at % 2 ? 'x' : '\u0001').repeat(60 * 1024)
      const claimed = await own.claim({ lease, claims: [{ key: `${at}`, value }] })
      tokens.push((claimed as Claimed).token)
    }
    const releases = tokens.map((token, at) => own.release({ lease, keys: [`${at}`], token }))
    await Promise.all(releases)
    expect((await own.read({ prefix: '' })).keys).toEqual([])
  }, 60_000)

  it('expires, though its end takes more than one request', async () => {
    const own = await store('/expires')
    const lease = await holdLongNames(own, 2000)
    await until(async () => (await own.read({ lease })).end?.reason === 'expired')
    expect((await own.read({ prefix: '' })).keys).toEqual([])
    const { tenures } = await own.read({ history: longNames(3)[249]! })
    expect(tenures.map(({ end }) => end.reason)).toEqual(['expired'])
  }, 60_000)

  it('is revoked, and counted', async () => {
    const own = await store('/revoked')
    const lease = await holdLongNames(own, 600_000)
    const heard: string[] = []
    own.watch({ prefix: '' }, (it) => {
      if (it.type === 'events') for (const { type, key } of it.events) heard.push(`${type} ${key}`)
    })
    const answer = await own.revoke({ target: { lease }, by: 'me', why: 'enough' })
    expect(answer).toMatchObject({ leases: 1, claims: 1000 })
    expect((await own.read({ lease })).end).toMatchObject({ by: 'me', why: 'enough' })
    await until(() => heard.length === 1000)
    expect(new Set(heard).size).toBe(1000)
  }, 60_000)

  it('is revoked once, though answers are lost on the way (I8)', async () => {
    const line = await TcpProxy.to(engine.port)
    const lossy = await zookeeperStore({ servers: `127.0.0.1:${line.port}`, timeout: '50s' })
    open.push(lossy)
    const lease = await holdLongNames(lossy, 600_000)
    let isDone = false
    const revoking = lossy.revoke({ target: { lease } }).finally(() => {
      isDone = true
    })
    while (!isDone) {
      const before = line.repliesLost
      line.loseReplies()
      await until(() => isDone || line.repliesLost > before)
      line.heal()
      // Long enough for some of it to be answered.
      await pause(150)
    }
    expect(await revoking).toMatchObject({ leases: 1, claims: 1000 })
    expect((await lossy.read({ prefix: '' })).keys).toEqual([])
    await line.close()
  }, 60_000)

  it('goes to others when its keeper is gone', async () => {
    const [keeper, other] = [await store('/gone'), await store('/gone')]
    await holdLongNames(keeper, 2000)
    await keeper.close()
    const claims = [{ key: longNames(0)[0]! }]
    const ask = () => other.grant({ holder: 'b', ttl: 60_000, ifFree: true, claims })
    await until(async () => (await ask()).outcome === 'granted')
  }, 60_000)

  it('is released again and again, though its histories would not fit', async () => {
    const own = await store('/history')
    const keys = Array.from({ length: 256 }, (_, at) => `key/${at}`)
    const claims = keys.map((key) => ({ key }))
    for (let round = 0; round < 14; round++) {
      const granted = await own.grant({ holder: 'h'.repeat(240), ttl: 600_000, claims })
      const { lease, token } = granted as Granted
      await own.release({ lease, keys, token })
      await own.revoke({ target: { lease } })
    }
    const { tenures } = await own.read({ history: 'key/0' })
    expect(tenures.length).toBeGreaterThan(4)
  }, 60_000)

  it('is renewed soon by one who did not keep it, in a thousand', async () => {
    const [keeper, other] = [await store('/adopted'), await store('/adopted')]
    const grants = Array.from({ length: 1000 }, () => keeper.grant({ holder: 'a', ttl: 600_000 }))
    const leases = (await Promise.all(grants)).map((granted) => (granted as Granted).lease)
    expect(await other.renew(leases)).toEqual({ lost: [], capped: [] })
  }, 60_000)
})
