import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Event, Granted, LeaseStore } from '../../../src/port/index.ts'
import { etcdStore } from '../../../src/stores/etcd/index.ts'
import { describeWith, Engine, ETCD } from '../../engines/index.ts'

describeWith(ETCD, 'what is too large for etcd', () => {
  let engine: Engine
  let store: LeaseStore
  beforeAll(async () => {
    engine = await Engine.start(ETCD)
    store = etcdStore({ grpc, endpoints: `127.0.0.1:${engine.port}`, timeout: '20s' })
  })
  afterAll(async () => {
    await store.close()
    await engine.stop()
  })

  const hold = async (key: string) =>
    (await store.grant({ holder: 'a', ttl: 600_000, claims: [{ key }] })) as Granted
  /** So many claims on keys that are as long as they may be. */
  const holdMany = async (holder: string, prefix: string, count: number, letter: string) => {
    const { lease } = (await store.grant({ holder, ttl: 600_000 })) as Granted
    const keys = Array.from({ length: count }, (_, at) => `${prefix}${at}-`.padEnd(500, letter))
    for (let at = 0; at < count; at += 40) {
      await store.claim({ lease, claims: keys.slice(at, at + 40).map((key) => ({ key })) })
    }
    return { lease, keys }
  }

  it.each([false, true])(
    'is divided: large updates of one turn, with request ids: %s',
    async (named) => {
      const held = []
      for (let at = 0; at < 32; at++) held.push(await hold(`updates-${named}/${at}`))
      const value = 'ü'.repeat(32 * 1024)
      const updates = held.map(({ lease, token }, at) => {
        const key = `updates-${named}/${at}`
        return store.update({ lease, key, token, value, request: named ? key : undefined })
      })
      const outcomes = await Promise.allSettled(updates)
      expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([])
      expect((await store.read({ key: `updates-${named}/31` })).claims[0]!.value).toBe(value)
    },
    60_000,
  )

  it('is refused at once, and measured as it is written: one claim of many values', async () => {
    const { lease } = await hold('values/other')
    const claimed = (value: string) => {
      const claims = Array.from({ length: 20 }, (_, at) => ({ key: `values/${at}`, value }))
      return store.claim({ lease, claims, request: `values ${value.length}` })
    }
    const quotes = claimed('"'.repeat(60 * 1024))
    await expect(quotes).rejects.toMatchObject({ code: 'limit-exceeded', outcome: 'refused' })
    await expect(quotes).rejects.toThrow(/2,?\d\d\d,?\d\d\d bytes.*claim fewer keys at once/)
    expect(await claimed('x'.repeat(60 * 1024))).toMatchObject({ outcome: 'claimed', holds: true })
  }, 60_000)

  it('is ended all the same: a lease with many long keys, in one revision', async () => {
    const { lease, keys } = await holdMany('h'.repeat(100), 'ended/', 1000, 'k')
    const words = { by: 'b'.repeat(200), why: 'w'.repeat(250) }
    const { revision: from } = await store.read({ lease })
    const removed: Event[] = []
    const watch = store.watch({ prefix: 'ended/', from }, (notice) => {
      if (notice.type === 'events') removed.push(...notice.events)
    })
    const revoked = await store.revoke({ target: { lease }, ...words })
    expect(revoked).toMatchObject({ leases: 1, claims: 1000, more: false })
    const end = { reason: 'revoked', ...words }
    expect((await store.renew([lease])).lost).toEqual([{ lease, end }])
    expect((await store.read({ prefix: 'ended/' })).keys).toEqual([])
    await expect.poll(() => removed.length).toBe(1000)
    expect(new Set(removed.map(({ revision }) => revision))).toEqual(new Set([revoked.revision]))
    expect(new Set(removed.map(({ end }) => end?.reason))).toEqual(new Set(['revoked']))
    watch.close()
    const { tenures } = await store.read({ history: keys[999]! })
    expect(tenures).toMatchObject([{ lease, end: { reason: 'revoked' } }])
  }, 120_000)

  it('is ended in parts, where it cannot be one: a lease with the longest names', async () => {
    const { lease, keys } = await holdMany('語'.repeat(250), 'parts/', 1000, '語')
    expect((await store.read({ lease })).claims.length).toBe(1000)
    const request = { target: { lease }, by: '語'.repeat(200), request: 'parts' }
    const revoked = await store.revoke(request)
    expect(revoked).toMatchObject({ leases: 1, claims: 1000, more: false })
    expect(await store.revoke(request)).toEqual(revoked)
    expect((await store.read({ prefix: 'parts/' })).keys).toEqual([])
    for (const key of [keys[0]!, keys[999]!]) {
      const { tenures } = await store.read({ history: key })
      expect(tenures).toMatchObject([{ lease, end: { reason: 'revoked' } }])
    }
  }, 120_000)
})
