import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Granted, LeaseStore, Notice, WatchTarget } from '../../../src/port/index.ts'
import { type EtcdStoreOptions, etcdStore } from '../../../src/stores/etcd/index.ts'
import { compactEtcd, describeWith, Engine, ETCD, etcdCall } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'

/** What a watch is told, and the next notice that is so. */
function listen(store: LeaseStore, target: WatchTarget) {
  const heard: Notice[] = []
  let wake = () => {}
  const watch = store.watch(target, (notice) => {
    heard.push(notice)
    wake()
  })
  const until = async <T extends Notice['type']>(type: T) => {
    for (;;) {
      const found = heard.find((notice) => notice.type === type)
      if (found) return found as Extract<Notice, { type: T }>
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return { heard, until, close: () => watch.close() }
}

describeWith(ETCD, 'the etcd store, through a line that can be cut', () => {
  let engine: Engine
  let line: TcpProxy
  let direct: LeaseStore
  beforeAll(async () => {
    engine = await Engine.start(ETCD)
    line = await TcpProxy.to(engine.port)
    direct = etcdStore({ grpc, endpoints: `127.0.0.1:${engine.port}`, timeout: '20s' })
  })
  afterAll(async () => {
    await direct.close()
    await line.close()
    await engine.stop()
  })

  const open = (options: Partial<EtcdStoreOptions> = {}) =>
    etcdStore({ grpc, endpoints: `127.0.0.1:${line.port}`, timeout: '20s', ...options })
  const hold = async (store: LeaseStore, key: string, ttl = 600_000) =>
    (await store.grant({ holder: 'a', ttl, claims: [{ key }] })) as Granted

  it('tells watches that were cut off while etcd was compacted, and a waiter still gets its turn', async () => {
    const store = open()
    const first = await hold(direct, 'cut/key')
    const waiter = await hold(store, 'cut/key')
    const prefix = listen(store, { prefix: 'cut/' })
    const own = listen(store, { lease: waiter.lease })
    await prefix.until('watching')
    await own.until('standing')
    line.reset()
    const { lease, token } = first
    const { revision } = await direct.release({ lease, keys: ['cut/key'], token })
    for (let count = 0; count < 3; count++) await hold(direct, `cut/other-${count}`)
    const latest = (await direct.read({ key: 'cut/key' })).revision
    await compactEtcd(engine.port, latest)
    line.heal()
    const { oldest } = await prefix.until('compacted')
    expect(oldest).toBeGreaterThan(revision)
    await own.until('interrupted')
    const { claims } = await listen(store, { lease: waiter.lease }).until('standing')
    expect(claims).toMatchObject([{ token: waiter.token, holds: true }])
    const again = listen(store, { prefix: 'cut/', from: oldest })
    await again.until('watching')
    await direct.release({ lease: waiter.lease, keys: ['cut/key'], token: waiter.token })
    const { events } = await again.until('events')
    expect(events[0]).toMatchObject({ type: 'removed', token: waiter.token })
    await store.close()
  }, 60_000)

  it('carries out a request once whose replies were lost', async () => {
    const store = open()
    const { lease } = await hold(store, 'lost/other')
    // Where a request is remembered is there already: the next reply is that of the claim itself.
    await store.claim({ lease, claims: [{ key: 'lost/before' }], request: 'before' })
    const lost = line.repliesLost
    line.loseReplies()
    const claimed = store.claim({ lease, claims: [{ key: 'lost/key' }], request: 'once' })
    while (line.repliesLost === lost) await new Promise((resolve) => setTimeout(resolve, 5))
    line.heal()
    const answer = await claimed
    const { claims, count } = await direct.read({ key: 'lost/key' })
    expect(count).toBe(1)
    expect(answer).toMatchObject({ outcome: 'claimed', holds: true, token: claims[0]!.token })
    await store.close()
  }, 60_000)

  it('calls a call unknown that was sent and not answered, and refuses to guess', async () => {
    const store = open({ timeout: '1s' })
    const { lease, token } = await hold(store, 'unknown/key')
    const other = await hold(store, 'unknown/other')
    await store.release({ lease: other.lease, keys: ['unknown/other'], token: other.token })
    line.cut('to-client')
    const released = store.release({ lease, keys: ['unknown/key'], token })
    await expect(released).rejects.toMatchObject({ code: 'unknown-outcome', outcome: 'unknown' })
    line.heal()
    await expect.poll(async () => (await direct.read({ key: 'unknown/key' })).count).toBe(0)
    await store.close()
  }, 60_000)

  it('ends a life by whoever knows of it, and by etcd itself where nobody is left', async () => {
    const granter = open()
    const known = (await direct.grant({ holder: 'a', ttl: 2000, maxLife: 3000 })) as Granted
    const orphan = (await granter.grant({
      ...{ holder: 'b', ttl: 2000, maxLife: 60_000, claims: [{ key: 'life/key' }] },
    })) as Granted
    await granter.close()
    const ears = [known, orphan].map(({ lease }) => listen(direct, { lease }))
    const beat = setInterval(() => void direct.renew([known.lease]).catch(() => {}), 500)
    const started = performance.now()
    expect((await ears[1]!.until('gone')).end).toEqual({ reason: 'expired' })
    expect((await ears[0]!.until('gone')).end).toMatchObject({ reason: 'expired', why: /life/ })
    clearInterval(beat)
    expect(performance.now() - started).toBeLessThan(20_000)
  }, 60_000)

  it('ends a life by the process that set it, though nobody watches and it was just renewed', async () => {
    const ttl = 4000
    const granted = await direct.grant({ holder: 'a', ttl, maxLife: 5000 })
    const { lease } = granted as Granted
    await new Promise((resolve) => setTimeout(resolve, 3000))
    const { capped } = await direct.renew([lease])
    expect(capped[0]!.remaining).toBeLessThanOrEqual(2000)
    const end = async () => (await direct.read({ lease })).end?.why
    await expect.poll(end, { timeout: 20_000 }).toMatch(/maximum life/)
  }, 60_000)

  it('tries endpoints in turn, and says which did not answer', async () => {
    const dead = '127.0.0.1:1'
    const store = etcdStore({ grpc, endpoints: [dead, `127.0.0.1:${engine.port}`] })
    await hold(store, 'turn/key')
    expect((await store.read({ key: 'turn/key' })).count).toBe(1)
    await store.close()
    const lost = etcdStore({ grpc, endpoints: [dead], timeout: '500ms' })
    await expect(hold(lost, 'turn/key')).rejects.toThrow(/127\.0\.0\.1:1.*ECONNREFUSED/)
    await lost.close()
  }, 60_000)

  it('asks the next endpoint, and waits for it, where one is silent', async () => {
    const other = await TcpProxy.to(engine.port)
    const endpoints = [line, other].map(({ port }) => `127.0.0.1:${port}`)
    const store = etcdStore({ grpc, endpoints, timeout: 4000, patience: 500 })
    await hold(store, 'silent/key')
    line.cut()
    // Its answers take their time, but less than it is waited for.
    other.cut('to-client')
    const slow = setTimeout(() => other.heal(), 800)
    const started = performance.now()
    expect((await store.read({ key: 'silent/key' })).count).toBe(1)
    expect(performance.now() - started).toBeLessThan(1000)
    clearTimeout(slow)
    await store.close()
    line.heal()
    await other.close()
  }, 60_000)

  it('gives up each call in its own time, though another was sent between its tries', async () => {
    const silent = await TcpProxy.to(engine.port)
    const endpoints = [line, silent].map(({ port }) => `127.0.0.1:${port}`)
    const store = etcdStore({ grpc, endpoints, timeout: 1500, patience: 1300 })
    await hold(store, 'time/key')
    for (const each of [line, silent]) each.cut()
    const started = performance.now()
    const settled = () => performance.now() - started
    const first = store.read({ key: 'time/key' }).then(settled, settled)
    await new Promise((resolve) => setTimeout(resolve, 900))
    const second = store.read({ key: 'time/key' }).then(settled, settled)
    // The first is sent again after 1.3 s, with little time left; the second has more than it.
    expect(await first).toBeLessThan(1900)
    expect(await second).toBeGreaterThan(2200)
    await store.close()
    for (const each of [line, silent]) each.heal()
    await silent.close()
  }, 60_000)

  it('says what is wrong with how it is opened', () => {
    const wrong = (options: object) => () =>
      etcdStore({ grpc, endpoints: 'a:1', ...options } as never)
    expect(wrong({ endpoints: [] })).toThrow(/endpoints.*at least one/)
    expect(wrong({ endpoints: 'nowhere' })).toThrow(/"nowhere" is no address.*host:2379/)
    expect(wrong({ endpoints: ['http://a:1', 'https://b:1'] })).toThrow(/TLS for all or none/)
    expect(wrong({ grpc: {} })).toThrow(/grpc is an object.*@grpc\/grpc-js/)
    expect(wrong({ prefix: '' })).toThrow(/prefix is ""/)
    expect(wrong({ timeout: 0 })).toThrow(/timeout is 0.*more than 0/)
    expect(wrong({ auth: { username: 'a' } })).toThrow(/auth.*password/)
  })

  it('logs in, and says so where etcd does not know it', async () => {
    const secured = await Engine.start(ETCD)
    const { port } = secured
    await etcdCall(port, 'auth/user/add', { name: 'root', password: 'secret' })
    await etcdCall(port, 'auth/role/add', { name: 'root' })
    await etcdCall(port, 'auth/user/grant', { user: 'root', role: 'root' })
    await etcdCall(port, 'auth/user/add', { name: 'guest', password: 'guest' })
    await etcdCall(port, 'auth/enable')
    const as = (username?: string, password = '') =>
      etcdStore({
        ...{ grpc, endpoints: `127.0.0.1:${port}`, timeout: '20s' },
        auth: username === undefined ? undefined : { username, password },
      })
    const stores = [as('root', 'secret'), as('root', 'wrong'), as('guest', 'guest'), as()]
    const [root, wrong, guest, nobody] = stores as [LeaseStore, LeaseStore, LeaseStore, LeaseStore]
    const { lease } = await hold(root, 'auth/key')
    await listen(root, { prefix: '' }).until('watching')
    expect(await root.renew([lease])).toEqual({ lost: [], capped: [] })
    await expect(hold(wrong, 'auth/key')).rejects.toMatchObject({ code: 'unauthenticated' })
    await expect(hold(guest, 'auth/key')).rejects.toMatchObject({ code: 'forbidden' })
    await expect(hold(nobody, 'auth/key')).rejects.toMatchObject({ code: 'unauthenticated' })
    for (const store of stores) await store.close()
    await secured.stop()
  }, 60_000)

  it('renews ten thousand leases in one call', async () => {
    const leases: string[] = []
    for (let round = 0; round < 20; round++) {
      const some = Array.from({ length: 50 }, () => direct.grant({ holder: 'a', ttl: 60_000 }))
      for (const granted of await Promise.all(some)) leases.push((granted as Granted).lease)
    }
    const many = Array.from({ length: 10_000 }, (_, at) => leases[at % leases.length]!)
    expect(await direct.renew(many)).toEqual({ lost: [], capped: [] })
  }, 120_000)
})
