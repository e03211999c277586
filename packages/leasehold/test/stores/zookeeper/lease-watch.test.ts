import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Claimed, Granted, LeaseStore, Notice } from '../../../src/port/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { describeWith, Engine, ZOOKEEPER } from '../../engines/index.ts'
import { until } from './raw-session.ts'
import { AnswerLoss, TRANSACTION, tapped, typeOf } from './tapped-socket.ts'

const GET_DATA = 4
const MULTI_READ = 22

describeWith(ZOOKEEPER, 'a watch on a lease in ZooKeeper', () => {
  let engine: Engine
  const stores: LeaseStore[] = []
  beforeAll(async () => {
    engine = await Engine.start(ZOOKEEPER)
  })
  afterAll(async () => {
    for (const store of stores) await store.close()
    await engine?.stop()
  })

  const open = async (root: string, more: object = {}) => {
    const servers = `127.0.0.1:${engine.port}`
    const store = await zookeeperStore({ servers, root, timeout: '20s', ...more })
    stores.push(store)
    return store
  }
  const hold = async (store: LeaseStore, key: string) =>
    (await store.grant({ holder: 'a', ttl: 600_000, claims: [{ key }] })) as Granted
  const release = (store: LeaseStore, { lease, token }: Granted, key: string) =>
    store.release({ lease, keys: [key], token })

  /** What a watch on a lease has told, and the first notice of a kind, as soon as it was told. */
  const listen = (store: LeaseStore, lease: string) => {
    const heard: Notice[] = []
    store.watch({ lease }, (notice) => heard.push(notice))
    const told = async (type: Notice['type']) => {
      await expect.poll(() => heard.map((notice) => notice.type), { timeout: 5000 }).toContain(type)
      return heard.find((notice) => notice.type === type)!
    }
    return { heard, told }
  }

  it('tells when a claim holds whose first answer was lost', async () => {
    const loss = new AnswerLoss()
    const [own, other] = [await open('/lost', { connect: tapped(loss) }), await open('/lost')]
    const first = await hold(other, 'key')
    const { lease } = await hold(own, 'other')
    const { told } = listen(own, lease)
    await told('standing')
    loss.isWanted = true
    const { holds, token } = (await own.claim({ lease, claims: [{ key: 'key' }] })) as Claimed
    expect([loss.isWanted, holds]).toEqual([false, false])
    await release(other, first, 'key')
    expect(await told('holds')).toMatchObject({ token })
  }, 30_000)

  it('tells when a claim holds what is left of it, though the answer to a release was lost', async () => {
    const loss = new AnswerLoss()
    const [own, other] = [await open('/left', { connect: tapped(loss) }), await open('/left')]
    const [, first] = [await hold(other, 'a'), await hold(other, 'b')]
    const { lease } = await hold(own, 'other')
    const { told } = listen(own, lease)
    await told('standing')
    const { token } = (await own.claim({ lease, claims: [{ key: 'a' }, { key: 'b' }] })) as Claimed
    loss.isWanted = true
    await own.release({ lease, keys: ['a'], token })
    expect(loss.isWanted).toBe(false)
    await release(other, first, 'b')
    expect(await told('holds')).toMatchObject({ token })
  }, 30_000)

  it('tells when a claim holds what is left of it, though that came free right after', async () => {
    let [isHeld, arrives] = [false, () => {}]
    const gate = new Promise<void>((resolve) => {
      arrives = resolve
    })
    // What is read after the release comes to the server late.
    const leaves = (packets: readonly Buffer[]) => {
      const types = packets.map(typeOf)
      if (isHeld && types.includes(MULTI_READ)) return gate
      isHeld ||= isReleasing && types.includes(TRANSACTION)
      return undefined
    }
    let isReleasing = false
    const own = await open('/after', { connect: tapped({ leaves }) })
    const other = await open('/after')
    const [, first] = [await hold(other, 'a'), await hold(other, 'b')]
    const { lease } = await hold(own, 'other')
    const { told } = listen(own, lease)
    await told('standing')
    const { token } = (await own.claim({ lease, claims: [{ key: 'a' }, { key: 'b' }] })) as Claimed
    isReleasing = true
    await own.release({ lease, keys: ['a'], token })
    await release(other, first, 'b')
    arrives()
    expect(await told('holds')).toMatchObject({ token })
  }, 30_000)

  it('tells of a claim that was taken while it began, in a store that does not keep it', async () => {
    const keeper = await open('/taken')
    const { lease, token } = await hold(keeper, 'key')
    let arrives = () => {}
    let hasLeft = false
    const gate = new Promise<void>((resolve) => {
      arrives = resolve
    })
    const leaves = (packets: readonly Buffer[]) => {
      const isLook = packets.some((packet) => typeOf(packet) === GET_DATA)
      hasLeft ||= isLook
      return isLook ? gate : undefined
    }
    const watching = await open('/taken', { connect: tapped({ leaves }) })
    const { told } = listen(watching, lease)
    await until(() => hasLeft)
    await keeper.revoke({ target: { key: 'key' }, by: 'me' })
    arrives()
    const notice = await told('standing')
    const isThere = notice.type === 'standing' && notice.claims.length > 0
    if (isThere) expect(await told('removed')).toMatchObject({ token, end: { by: 'me' } })
  }, 30_000)

  it('lets a claim be released by two stores, key by key', async () => {
    const [own, other] = [await open('/parts'), await open('/parts')]
    const { lease } = await hold(own, 'other')
    const claims = [{ key: 'a' }, { key: 'b' }]
    const { token } = (await own.claim({ lease, claims })) as Claimed
    await other.release({ lease, keys: ['a'], token })
    await own.release({ lease, keys: ['b'], token })
    expect((await own.read({ lease })).lease?.claims).toBe(1)
  }, 30_000)

  it('tells when a claim holds what is left of it, though it was released through another store', async () => {
    const [own, other] = [await open('/elsewhere'), await open('/elsewhere')]
    const [, first] = [await hold(other, 'a'), await hold(other, 'b')]
    const { lease } = await hold(own, 'other')
    const { told } = listen(own, lease)
    await told('standing')
    const { token } = (await own.claim({ lease, claims: [{ key: 'a' }, { key: 'b' }] })) as Claimed
    await other.release({ lease, keys: ['a'], token })
    await release(other, first, 'b')
    expect(await told('holds')).toMatchObject({ token })
  }, 30_000)

  it('does not keep a renewal from telling of a break that was only just made', async () => {
    const [own, other] = [await open('/broken'), await open('/broken')]
    for (let round = 0; round < 10; round++) {
      const { lease } = await hold(own, `key-${round}`)
      await other.revoke({ target: { lease }, after: 5000, by: 'ops', why: 'move' })
      const { capped } = await own.renew([lease])
      expect(capped).toMatchObject([{ lease, end: { reason: 'broken', by: 'ops', why: 'move' } }])
    }
  }, 30_000)
})
