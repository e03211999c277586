import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Granted, LeaseStore, Notice } from '../../../src/port/index.ts'
import { type EtcdStoreOptions, etcdStore } from '../../../src/stores/etcd/index.ts'
import { compactEtcd, describeWith, Engine, ETCD } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'

type Notices<T extends Notice['type']> = Extract<Notice, { type: T }>

describeWith(ETCD, 'a watch on a lease in etcd', () => {
  let engine: Engine
  let line: TcpProxy
  let direct: LeaseStore
  const stores: LeaseStore[] = []
  beforeAll(async () => {
    engine = await Engine.start(ETCD)
    line = await TcpProxy.to(engine.port)
    direct = open({ endpoints: `127.0.0.1:${engine.port}` })
  })
  afterAll(async () => {
    for (const store of stores) await store.close()
    await line.close()
    await engine.stop()
  })

  const open = (options: Partial<EtcdStoreOptions> = {}) => {
    const endpoints = `127.0.0.1:${line.port}`
    const store = etcdStore({ grpc, endpoints, timeout: '20s', ...options })
    stores.push(store)
    return store
  }
  const hold = async (store: LeaseStore, key: string, more: object = {}) =>
    (await store.grant({ holder: 'a', ttl: 600_000, claims: [{ key }], ...more })) as Granted
  const release = (store: LeaseStore, { lease, token }: Granted, key: string) =>
    store.release({ lease, keys: [key], token })

  /** What a watch on a lease has told, and the first notice of a kind, as soon as it was told. */
  const listen = (store: LeaseStore, lease: string) => {
    const heard: Notice[] = []
    store.watch({ lease }, (notice) => heard.push(notice))
    const told = async <T extends Notice['type']>(...types: T[]) => {
      const find = () => heard.find(({ type }) => (types as string[]).includes(type))
      await expect.poll(find, { timeout: 8000 }).toBeDefined()
      return find() as Notices<T>
    }
    return { heard, told }
  }

  /** A store, and how many streams it has open that hear what happens. */
  const counted = () => {
    let streams = 0
    class Counting extends grpc.Client {
      override makeBidiStreamRequest = ((...args: [string, never, never, never]) => {
        const stream = super.makeBidiStreamRequest(...args)
        if (!args[0].endsWith('/Watch')) return stream
        streams++
        stream.on('status', () => streams--)
        return stream
      }) as never
    }
    return { store: open({ grpc: { ...grpc, Client: Counting } as never }), count: () => streams }
  }

  it('leaves nothing behind that was closed by its own observer', async () => {
    const { store, count } = counted()
    const { lease } = await hold(store, 'own/key')
    const heard: string[] = []
    const watch = store.watch({ lease }, ({ type }) => {
      heard.push(type)
      watch.close()
    })
    await expect.poll(() => heard).toEqual(['standing'])
    await expect.poll(count).toBe(0)
  })

  it('leaves nothing behind that was closed while it looked how things stand', async () => {
    const { store, count } = counted()
    const { lease } = await hold(store, 'begun/key')
    const watch = store.watch({ lease }, () => {})
    line.cut()
    await new Promise((resolve) => setTimeout(resolve, 50))
    watch.close()
    line.heal()
    await store.read({ lease })
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(count()).toBe(0)
  })

  it('tells when a claim holds whose first answer was lost', async () => {
    const store = open()
    const first = await hold(direct, 'lost/key')
    const { lease } = await hold(store, 'lost/other')
    const { told } = listen(store, lease)
    await told('standing')
    await store.claim({ lease, claims: [{ key: 'lost/before' }], request: 'before' })
    const lost = line.repliesLost
    line.loseReplies()
    const claiming = store.claim({ lease, claims: [{ key: 'lost/key' }], request: 'once' })
    await expect.poll(() => line.repliesLost).toBeGreaterThan(lost)
    line.heal()
    const claimed = await claiming
    expect(claimed).toMatchObject({ outcome: 'claimed', holds: false })
    await release(direct, first, 'lost/key')
    expect(await told('holds')).toMatchObject({ token: (claimed as { token: number }).token })
  }, 30_000)

  it('tells of a claim made elsewhere that held by the time it was heard of', async () => {
    const store = open()
    const first = await hold(direct, 'elsewhere/key')
    const { lease } = await hold(store, 'elsewhere/other')
    const { told } = listen(store, lease)
    await told('standing')
    await expect.poll(async () => (await store.renew([lease])).lost).toEqual([])
    line.cut('to-client')
    const claimed = await direct.claim({ lease, claims: [{ key: 'elsewhere/key' }] })
    expect(claimed).toMatchObject({ outcome: 'claimed', holds: false })
    await release(direct, first, 'elsewhere/key')
    line.heal()
    expect(await told('holds')).toMatchObject({ token: (claimed as { token: number }).token })
  }, 30_000)

  it('tells, or is broken off, where a claim was taken and etcd has forgotten how', async () => {
    const store = open()
    const { lease } = await hold(store, 'taken/key')
    const { told } = listen(store, lease)
    await told('standing')
    await store.renew([lease])
    line.reset()
    await direct.revoke({ target: { key: 'taken/key' }, by: 'me' })
    for (let count = 0; count < 3; count++) await hold(direct, `taken/other-${count}`)
    await compactEtcd(engine.port, (await direct.read({ key: 'taken/key' })).revision)
    line.heal()
    await told('removed', 'interrupted')
  }, 30_000)

  it('tells how long is left of a limited life that another process has broken', async () => {
    const store = open()
    const { lease } = await hold(store, 'life/key', { maxLife: 600_000 })
    const { told } = listen(store, lease)
    await told('standing')
    await direct.revoke({ target: { lease }, after: 5000, by: 'me' })
    const { remaining, end } = await told('capped')
    expect(end).toMatchObject({ reason: 'broken', by: 'me' })
    expect(remaining).toBeLessThanOrEqual(6000)
    const { capped } = await store.renew([lease])
    expect(capped).toMatchObject([{ lease, end: { reason: 'broken' } }])
    expect(capped[0]!.remaining).toBeLessThanOrEqual(6000)
  }, 30_000)

  it('looks for another member, however long ago one was sought in vain', async () => {
    const timeout = 500
    const endpoints = [`127.0.0.1:${line.port}`, `127.0.0.1:${engine.port}`]
    const store = open({ endpoints, timeout, patience: timeout })
    store.watch({ prefix: 'member/' }, () => {}).close()
    await new Promise((resolve) => setTimeout(resolve, 2 * timeout))
    line.reset()
    const heard: string[] = []
    store.watch({ prefix: 'member/' }, ({ type }) => heard.push(type))
    await expect.poll(() => heard.length, { timeout: 8000 }).toBe(1)
    line.heal()
    expect(heard).toEqual(['watching'])
  }, 30_000)

  it('tells of a break that was made while it looked at claims of another store', async () => {
    const other = open()
    const claims = Array.from({ length: 30 }, (_, at) => ({ key: `broken-${at}` }))
    await other.grant({ holder: 'b', ttl: 600_000, claims })
    const { lease } = await hold(direct, 'broken')
    const { told } = listen(direct, lease)
    await told('standing')
    // Of each claim that waits, whoever watches its lease is told to look.
    await Promise.all(claims.map((claim) => other.claim({ lease, claims: [claim] })))
    await other.revoke({ target: { lease }, after: 60_000, by: 'ops', why: 'move' })
    expect(await told('capped')).toMatchObject({ end: { reason: 'broken', by: 'ops' } })
  }, 60_000)

  it('tells once that a claim holds, though the call is sent again afterwards', async () => {
    const first = await hold(direct, 'again')
    const { lease } = await hold(direct, 'again-own')
    const { heard, told } = listen(direct, lease)
    await told('standing')
    const request = { lease, claims: [{ key: 'again' }], request: 'again-1' }
    await direct.claim(request)
    await release(direct, first, 'again')
    await told('holds')
    await direct.claim(request)
    // As long as etcd may take to tell again how the line was when the claim was made.
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(heard.filter(({ type }) => type === 'holds')).toHaveLength(1)
  })
})
