import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Claimed, Granted, LeaseStore } from '../../../src/port/index.ts'
import { etcdStore } from '../../../src/stores/etcd/index.ts'
import { describeWith, Engine, ETCD, etcdCall } from '../../engines/index.ts'

describeWith(ETCD, 'releases of one turn on etcd', () => {
  let engine: Engine
  let store: LeaseStore
  let lease: string
  beforeAll(async () => {
    engine = await Engine.start(ETCD)
    store = etcdStore({ grpc, endpoints: `127.0.0.1:${engine.port}`, timeout: '20s' })
    lease = ((await store.grant({ holder: 'a', ttl: 600_000 })) as Granted).lease
  })
  afterAll(async () => {
    await store.close()
    await engine.stop()
  })

  const claim = async (key: string, shared = false) => {
    const claims = [shared ? { key, mode: 'shared' as const } : { key }]
    return ((await store.claim({ lease, claims })) as Claimed).token
  }
  const release = (key: string, token: number, request?: string) =>
    store.release({ lease, keys: [key], token, request })
  const countOf = async (key: string) => (await store.read({ key })).count

  /** Ends the etcd leases that are not ours but the store's own. */
  const endOthers = async () => {
    const { leases } = (await etcdCall(engine.port, 'lease/leases')) as { leases: { ID: string }[] }
    const others = leases.filter(({ ID }) => Number(ID) !== Number.parseInt(lease, 36))
    expect(others.length).toBeGreaterThan(0)
    for (const { ID } of others) await etcdCall(engine.port, 'lease/revoke', { ID })
  }

  it('happen together, up to so many, and each key is free afterwards', async () => {
    const keys = Array.from({ length: 40 }, (_, at) => `many/${at}`)
    const tokens = await Promise.all(keys.map((key) => claim(key)))
    expect(new Set(tokens).size).toBe(40)
    const answers = await Promise.all(keys.map((key, at) => release(key, tokens[at]!)))
    expect(new Set(answers.map(({ revision }) => revision)).size).toBe(2)
    expect((await store.read({ prefix: 'many/' })).keys).toEqual([])
    const { tenures } = await store.read({ history: 'many/39' })
    expect(tenures).toMatchObject([{ token: tokens[39], end: { reason: 'released' } }])
  })

  it('are refused one by one, and the others are carried out', async () => {
    const [first, last] = await Promise.all([claim('one/first'), claim('one/last')])
    const [done, refused, also] = await Promise.allSettled([
      release('one/first', first),
      release('one/last', first),
      release('one/last', last),
    ])
    expect(done.status).toBe('fulfilled')
    expect(refused).toMatchObject({ reason: { code: 'claim-not-found' } })
    expect(also.status).toBe('fulfilled')
    expect(await countOf('one/first')).toBe(0)
    expect(await countOf('one/last')).toBe(0)
  })

  it('may be of one key, which etcd does not write twice at once', async () => {
    const tokens = [await claim('same', true), await claim('same', true), await claim('same', true)]
    const answers = await Promise.all(tokens.map((token) => release('same', token)))
    expect(new Set(answers.map(({ revision }) => revision)).size).toBe(3)
    expect(await countOf('same')).toBe(0)
  })

  it('are carried out once, where one is asked for twice', async () => {
    const [once, other] = await Promise.all([claim('twice/once'), claim('twice/other')])
    const answers = await Promise.all([
      release('twice/once', once, 'the same'),
      release('twice/other', other),
      release('twice/once', once, 'the same'),
    ])
    expect(answers[2]).toEqual(answers[0])
    expect(await release('twice/once', once, 'the same')).toEqual(answers[0])
  })

  it('are carried out though what they note their ends with has ended, as after a sleep', async () => {
    const keys = Array.from({ length: 4 }, (_, at) => `slept/${at}`)
    const tokens = await Promise.all(keys.map((key) => claim(key)))
    await endOthers()
    await Promise.all(keys.map((key, at) => release(key, tokens[at]!, at > 1 ? key : undefined)))
    expect((await store.read({ prefix: 'slept/' })).keys).toEqual([])
    const token = await claim('slept/later')
    await endOthers()
    expect(await store.revoke({ target: { key: 'slept/later' } })).toMatchObject({ claims: 1 })
    const { tenures } = await store.read({ history: 'slept/later' })
    expect(tenures).toMatchObject([{ token, end: { reason: 'revoked' } }])
  })
})
