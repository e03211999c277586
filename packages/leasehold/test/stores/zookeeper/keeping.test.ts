import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Claimed, Granted, LeaseStore, Notice } from '../../../src/port/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { getChildren } from '../../../src/stores/zookeeper/wire/index.ts'
import { describeWith, Ensemble, ZOOKEEPER } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'
import { pause, rawSession, until } from './raw-session.ts'

/** The tests' ensembles have ticks of 250 ms: no session is longer than 20 of them. */
const LONGEST_SESSION_MS = 5000

describeWith(ZOOKEEPER, 'leases in ZooKeeper', () => {
  let ensemble: Ensemble
  const open: LeaseStore[] = []

  beforeAll(async () => {
    ensemble = await Ensemble.start()
  })

  afterAll(async () => {
    for (const store of open) await store.close()
    await ensemble?.stop()
  })

  const store = async (root: string, more: object = {}) => {
    const opened = await zookeeperStore({ servers: ensemble.servers, root, ...more })
    open.push(opened)
    return opened
  }

  describe('whose keeper is gone', { concurrent: true }, () => {
    it.each([
      ['within the longest session', 2000],
      ['beyond the longest session', LONGEST_SESSION_MS + 2000],
    ])(
      'live their ttl, %s, and then go to who waits (I10, I11)',
      async (_, ttl) => {
        const root = `/gone-${ttl}`
        const [keeper, other] = [await store(root), await store(root)]
        const granted = performance.now()
        await hold(keeper, 'key', ttl)
        const heir = await hold(other, 'key', 60_000)
        const holds = notice(other, heir.lease, 'holds')
        const events: Notice[] = []
        other.watch({ prefix: '' }, (heard) => events.push(heard))
        await keeper.close()
        await holds
        const lived = performance.now() - granted
        expect(lived).toBeGreaterThanOrEqual(ttl)
        // On a machine that is busy; what is promised is in the guarantees.
        expect(lived).toBeLessThan(ttl + other.guarantees.expiryLateness + 5000)
        const { claims, holders } = await other.read({ key: 'key' })
        expect([holders, claims.map(({ token }) => token)]).toEqual([1, [heir.token]])
        const { tenures } = await other.read({ history: 'key' })
        expect(tenures.map(({ end }) => end.reason)).toEqual(['expired'])
        const told = events.flatMap((each) => (each.type === 'events' ? each.events : []))
        expect(told.map(({ type, end }) => [type, end?.reason])).toContainEqual([
          'removed',
          'expired',
        ])
      },
      60_000,
    )

    it('end at once for one who asks whether the key is free, when they are due', async () => {
      const [keeper, other] = [await store('/asked'), await store('/asked')]
      const { lease } = await hold(keeper, 'key', 1500)
      const { lease: own } = await grant(other, 60_000)
      const ask = () => other.claim({ lease: own, claims: [{ key: 'key' }], ifFree: true })
      expect((await ask()).outcome).toBe('busy')
      await keeper.close()
      await until(async () => (await ask()).outcome === 'claimed')
      expect((await other.read({ lease })).end?.reason).toBe('expired')
    }, 60_000)

    it('live on by whoever renews them', async () => {
      const [keeper, other] = [await store('/adopted'), await store('/adopted')]
      const { lease, token } = await hold(keeper, 'key', 1500)
      const waiting = await store('/adopted')
      const heir = await hold(waiting, 'key', 60_000)
      const holds = notice(waiting, heir.lease, 'holds')
      await keeper.close()
      for (let renewals = 0; renewals < 8; renewals++) {
        expect(await other.renew([lease])).toEqual({ lost: [], capped: [] })
        await pause(500)
      }
      const { claims } = await other.read({ key: 'key' })
      expect(claims.map((claim) => claim.token)).toEqual([token, heir.token])
      await notice(other, lease, 'gone')
      await holds
    }, 60_000)
  })

  it('are kept by two stores in turn as by one', async () => {
    const [one, two] = [await store('/turns'), await store('/turns')]
    const { lease, token } = await hold(one, 'key', 1500)
    for (let turn = 0; turn < 8; turn++) {
      const keeper = turn % 2 === 0 ? two : one
      expect(await keeper.renew([lease])).toEqual({ lost: [], capped: [] })
      await pause(400)
    }
    await one.release({ lease, keys: ['key'], token })
    await two.revoke({ target: { lease }, by: 'me' })
    expect((await one.renew([lease])).lost[0]?.end?.by).toBe('me')
  }, 60_000)

  it('are found at once by a store on another server, which may lag behind', async () => {
    const on = ensemble.members.map(({ port }) =>
      store('/lagging', { servers: `127.0.0.1:${port}` }),
    )
    const stores = await Promise.all(on)
    for (let round = 0; round < 60; round++) {
      const own = stores[round % 3]!
      const [next, last] = [stores[(round + 1) % 3]!, stores[(round + 2) % 3]!]
      const { lease, token } = await hold(own, `key-${round}`, 60_000)
      const watched = notice(last, lease, 'standing')
      expect((await next.renew([lease])).lost).toEqual([])
      await next.release({ lease, keys: [`key-${round}`], token })
      await watched
    }
  }, 60_000)

  it('are granted and claimed once, though answers are lost on the way (I8)', async () => {
    const lines = await Promise.all(ensemble.members.map(({ port }) => TcpProxy.to(port)))
    const servers = lines.map(({ port }) => `127.0.0.1:${port}`).join(',')
    const lossy = await store('/lossy', { servers, timeout: '30s' })
    const { lease } = await grant(lossy, 60_000)
    const lost = () => lines.reduce((sum, { repliesLost }) => sum + repliesLost, 0)
    // The key is known from its first claim on: then the first thing that is sent is the change itself.
    for (let round = 0; round < 10; round++) {
      const before = lost()
      if (round > 0) for (const line of lines) line.loseReplies()
      const claiming = lossy.claim({ lease, claims: [{ key: 'key' }] })
      const granting = hold(lossy, 'key', 60_000)
      if (round > 0) await until(() => lost() > before + 1)
      for (const line of lines) line.heal()
      const [claimed, granted] = [(await claiming) as Claimed, await granting]
      const { claims } = await lossy.read({ key: 'key' })
      const tokens = claims.map(({ token }) => token)
      expect(new Set(tokens)).toEqual(new Set([claimed.token, granted.token]))
      expect(tokens.length).toBe(2)
      await lossy.release({ lease, keys: ['key'], token: claimed.token })
      await lossy.revoke({ target: { lease: granted.lease } })
    }
    for (const line of lines) await line.close()
  }, 120_000)

  it('hold a key one at a time, though many ask at once whether it is free (I2)', async () => {
    const stores = await Promise.all(Array.from({ length: 4 }, () => store('/free')))
    const leases = await Promise.all(stores.map((each) => grant(each, 60_000)))
    const claims = [{ key: 'key' }]
    for (let round = 0; round < 20; round++) {
      const answers = await Promise.all(
        stores.map((each, at) => each.claim({ lease: leases[at]!.lease, claims, ifFree: true })),
      )
      const outcomes = answers.map(({ outcome }) => outcome).sort()
      expect(outcomes).toEqual(['busy', 'busy', 'busy', 'claimed'])
      const winner = answers.findIndex(({ outcome }) => outcome === 'claimed')
      const { lease } = leases[winner]!
      const { token } = answers[winner] as Claimed
      await stores[winner]!.release({ lease, keys: ['key'], token })
    }
  }, 60_000)

  it('leave behind no more than is remembered', async () => {
    const small = await store('/small', { limits: { events: 64 } })
    for (let count = 0; count < 300; count++) {
      const { lease, token } = await hold(small, `key-${count % 7}`, 60_000)
      await small.release({ lease, keys: [`key-${count % 7}`], token, request: `request-${count}` })
      await small.revoke({ target: { lease } })
    }
    const session = rawSession(ensemble.members[0]!.port)
    const count = async (path: string) => (await session.call(getChildren(path))).value.length
    // 900 changes were made; those beyond the limit go 128 at a time, and each store looks now and then.
    await until(async () => (await count('/small/j')) < 64 + 128 + 256)
    expect(await count('/small/e')).toBeLessThan(64 + 128 + 256)
    expect(await count('/small/a')).toBe(0)
    await session.close('end')
  }, 120_000)
})

async function grant(store: LeaseStore, ttl: number): Promise<Granted> {
  const answer = await store.grant({ holder: 'alice', ttl })
  return answer as Granted
}

async function hold(store: LeaseStore, key: string, ttl: number): Promise<Granted> {
  return (await store.grant({ holder: 'alice', ttl, claims: [{ key }] })) as Granted
}

/** Fulfilled when this store tells a lease so. */
function notice(store: LeaseStore, lease: string, type: Notice['type']): Promise<Notice> {
  return new Promise((resolve, reject) => {
    store.watch({ lease }, (heard) => {
      if (heard.type === type) resolve(heard)
      else if (heard.type === 'interrupted') reject(heard.error)
    })
  })
}
