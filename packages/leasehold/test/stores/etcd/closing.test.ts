import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Granted, isLeaseholdError, type LeaseStore } from '../../../src/port/index.ts'
import { etcdStore } from '../../../src/stores/etcd/index.ts'
import { describeWith, Engine, ETCD } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'

type Unary = grpc.Client['makeUnaryRequest']

describeWith(ETCD, 'an etcd store that is closed while calls are under way', () => {
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

  const hold = async (store: LeaseStore, key: string) =>
    (await store.grant({ holder: 'a', ttl: 600_000, claims: [{ key }] })) as Granted

  it('says unknown of what was sent and changes something, closed of the rest', async () => {
    const store = etcdStore({ grpc, endpoints: `127.0.0.1:${line.port}`, timeout: '20s' })
    const [one, two] = [await hold(store, 'sent/one'), await hold(store, 'sent/two')]
    const other = await hold(store, 'sent/other')
    await store.release({ lease: other.lease, keys: ['sent/other'], token: other.token })
    await store.renew([one.lease])
    line.cut('to-client')
    const sent = [
      store.release({ lease: one.lease, keys: ['sent/one'], token: one.token }),
      store.renew([two.lease]),
      store.read({ key: 'sent/one' }),
    ]
    const codes = Promise.all(sent.map((call) => call.then(String, ({ code }) => code)))
    await expect.poll(async () => (await direct.read({ key: 'sent/one' })).count).toBe(0)
    const unsent = store.release({ lease: two.lease, keys: ['sent/two'], token: two.token })
    const refused = expect(unsent).rejects.toMatchObject({ code: 'closed' })
    await store.close()
    expect(await codes).toEqual(['unknown-outcome', 'unknown-outcome', 'closed'])
    await refused
    line.heal()
    expect((await direct.read({ key: 'sent/two' })).count).toBe(1)
  }, 60_000)

  /** A store that is closed as soon as etcd has answered the transaction with this number. */
  const closedAfter = (count: () => number): LeaseStore => {
    class Tapped extends grpc.Client {
      override makeUnaryRequest = ((...args: Parameters<Unary>) => {
        const [method, hear] = [args[0], args.at(5) as unknown as () => void]
        const tapped = (...answer: []) => {
          hear(...answer)
          if (method.endsWith('/Txn') && count() === 0) void store.close()
        }
        const rest = [...args.slice(0, 5), tapped] as unknown as Parameters<Unary>
        return super.makeUnaryRequest(...rest)
      }) as Unary
    }
    const endpoints = `127.0.0.1:${engine.port}`
    const store = etcdStore({ grpc: { ...grpc, Client: Tapped } as never, endpoints })
    return store
  }

  type Scene = { store: LeaseStore; key: string; lease: string; token: number }
  const calls: Record<string, (scene: Scene) => Promise<unknown>> = {
    grant: ({ store, key }) =>
      store.grant({ holder: 'b', ttl: 600_000, claims: [{ key }], request: `grant ${key}` }),
    claim: ({ store, key, lease }) => store.claim({ lease, claims: [{ key }] }),
    release: ({ store, key, lease, token }) => store.release({ lease, keys: [key], token }),
    update: ({ store, key, lease, token }) => store.update({ lease, key, token, value: 'new' }),
    'revoke of a lease': ({ store, lease }) => store.revoke({ target: { lease }, by: 'b' }),
    'revoke of a key': ({ store, key }) => store.revoke({ target: { key } }),
    'revoke of a lease later': ({ store, lease }) =>
      store.revoke({ target: { lease }, after: 60_000 }),
  }

  it.each(Object.keys(calls))(
    'never calls a %s refused that has changed something',
    async (name) => {
      for (let steps = 1; steps <= 5; steps++) {
        const key = `steps/${name.replaceAll(' ', '-')}/${steps}`
        const { lease, token } = await hold(direct, key)
        const state = async () => {
          const { claims } = await direct.read({ key })
          const read = await direct.read({ lease })
          const { endOfLife } = read.lease ?? {}
          const each = claims.map(({ token, value }) => [token, value])
          return { each, endOfLife, claims: read.lease?.claims, end: read.end }
        }
        const before = await state()
        let left = Infinity
        const store = closedAfter(() => --left)
        await store.read({ lease })
        left = steps
        const error = await calls[name]!({ store, key, lease, token }).then(
          () => undefined,
          (error) => error,
        )
        if (error !== undefined) expect(isLeaseholdError(error)).toBe(true)
        const isSame = JSON.stringify(await state()) === JSON.stringify(before)
        if (error?.outcome === 'refused') expect([name, steps, isSame]).toEqual([name, steps, true])
        await store.close()
      }
    },
    60_000,
  )
})
