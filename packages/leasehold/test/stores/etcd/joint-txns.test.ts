import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Granted, LeaseStore } from '../../../src/port/index.ts'
import { etcdStore } from '../../../src/stores/etcd/index.ts'
import { describeWith, Engine, ETCD, etcdCall } from '../../engines/index.ts'
import { claim, claimMany, itReleasesTogether, release } from '../releases-together.ts'

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

  itReleasesTogether(() => ({ store, lease }))

  /** Ends the etcd leases that are not ours but the store's own. */
  const endOthers = async () => {
    const { leases } = (await etcdCall(engine.port, 'lease/leases')) as { leases: { ID: string }[] }
    const others = leases.filter(({ ID }) => Number(ID) !== Number.parseInt(lease, 36))
    expect(others.length).toBeGreaterThan(0)
    for (const { ID } of others) await etcdCall(engine.port, 'lease/revoke', { ID })
  }

  it('are carried out though what they note their ends with has ended, as after a sleep', async () => {
    const scene = { store, lease }
    const held = await claimMany(scene, 'slept/', 4)
    await endOthers()
    await Promise.all(
      held.map(({ key, token }, at) => release(scene, key, token, at > 1 ? key : undefined)),
    )
    expect((await store.read({ prefix: 'slept/' })).keys).toEqual([])
    const token = await claim(scene, 'slept/later')
    await endOthers()
    expect(await store.revoke({ target: { key: 'slept/later' } })).toMatchObject({ claims: 1 })
    const { tenures } = await store.read({ history: 'slept/later' })
    expect(tenures).toMatchObject([{ token, end: { reason: 'revoked' } }])
  })
})
