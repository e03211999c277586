import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { entryAt, openConsul, put } from './open-consul.ts'

describe('the key-value store of the Consul API', () => {
  let scene: Awaited<ReturnType<typeof openConsul>>

  beforeEach(async () => {
    scene = await openConsul()
  })
  afterEach(() => scene.gateway.close())

  it('sets, reads, lists and deletes with npm consul', async () => {
    const { kv } = scene.client
    expect(await kv.get('a/b')).toBeUndefined()
    expect(await kv.set({ key: 'a/b', value: 'one', flags: 7 })).toBe(true)
    expect(await kv.set('a/c/d', 'two')).toBe(true)
    expect(await kv.get('a/b')).toMatchObject({ Key: 'a/b', Value: 'one', Flags: 7, LockIndex: 0 })
    expect(await kv.keys('a/')).toEqual(['a/b', 'a/c/d'])
    expect(await kv.keys({ key: 'a/', separator: '/' })).toEqual(['a/b', 'a/c/'])
    const all = (await kv.get({ key: 'a', recurse: true })) as { Key: string }[]
    expect(all.map(({ Key }) => Key)).toEqual(['a/b', 'a/c/d'])
    await kv.del('a/b')
    await kv.del({ key: 'a/', recurse: true })
    expect(await kv.get('a/c/d')).toBeUndefined()
    expect(await scene.store.read({ leases: true })).toMatchObject({ leases: [] })
  })

  it('keeps any bytes, and answers them unchanged with raw', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => at))
    await put(scene.url, 'kv/bytes', bytes)
    const raw = await fetch(`${scene.url}/kv/bytes?raw`)
    expect(Buffer.from(await raw.arrayBuffer())).toEqual(bytes)
    expect((await entryAt(scene.url, 'bytes'))?.Value).toBe(bytes.toString('base64'))
    await put(scene.url, 'kv/empty')
    expect((await entryAt(scene.url, 'empty'))?.Value).toBeNull()
  })

  it('writes and deletes on the condition of an index', async () => {
    const { url } = scene
    expect(await put(url, 'kv/x?cas=5', 'no')).toBe('false')
    expect(await put(url, 'kv/x?cas=0', 'one')).toBe('true')
    expect(await put(url, 'kv/x?cas=0', 'no')).toBe('false')
    const one = (await entryAt(url, 'x'))!
    const both = await Promise.all(
      ['two', 'three'].map((value) => put(url, `kv/x?cas=${one.ModifyIndex}`, value)),
    )
    expect(both.sort()).toEqual(['false', 'true'])
    const two = (await entryAt(url, 'x'))!
    expect(two.ModifyIndex).toBeGreaterThan(one.ModifyIndex)
    expect(two.CreateIndex).toBe(one.CreateIndex)
    const remove = async (cas: number) =>
      (await fetch(`${url}/kv/x?cas=${cas}`, { method: 'DELETE' })).text()
    expect(await remove(one.ModifyIndex)).toBe('false')
    expect(await remove(two.ModifyIndex)).toBe('true')
    expect(await entryAt(url, 'x')).toBeUndefined()
  })

  it('answers a blocking query when its key changes, is created or deleted, and no other', async () => {
    const { url } = scene
    const missing = await fetch(`${url}/kv/new`)
    const index = Number(missing.headers.get('x-consul-index'))
    expect([missing.status, index > 0]).toEqual([404, true])
    let answered = 0
    const blocking = async (key: string, after: number) => {
      const response = await fetch(`${url}/kv/${key}index=${after}&wait=60s`)
      answered++
      return Number(response.headers.get('x-consul-index'))
    }
    const created = blocking('new?', index)
    const under = blocking('?recurse&', index)
    await put(url, 'kv/other', 'x')
    expect(await under).toBeGreaterThan(index)
    expect(answered).toBe(1)
    await put(url, 'kv/new', 'x')
    const first = await created
    expect(first).toBe((await entryAt(url, 'new'))?.ModifyIndex)
    const deleted = blocking('new?', first)
    await fetch(`${url}/kv/new`, { method: 'DELETE' })
    expect(await deleted).toBeGreaterThan(first)
  })

  it('holds 1,000 blocking queries without a read, and answers all at a change', async () => {
    const { url, store, clock } = scene
    await put(url, 'kv/a', 'x')
    const { ModifyIndex } = (await entryAt(url, 'a'))!
    const timers = vi.spyOn(clock, 'timer')
    const held = Array.from({ length: 1000 }, async () => {
      const response = await fetch(`${url}/kv/a?index=${ModifyIndex}`)
      await response.arrayBuffer()
      return Number(response.headers.get('x-consul-index'))
    })
    await expect.poll(() => timers.mock.calls.length, { timeout: 240_000 }).toBe(1000)
    const reads = vi.spyOn(store, 'read')
    await clock.advance(60_000)
    expect(reads).not.toHaveBeenCalled()
    // A write of another key: only the write itself reads.
    await put(url, 'kv/b', 'x')
    expect(reads.mock.calls.length).toBeLessThan(5)
    await put(url, 'kv/a', 'y')
    const after = (await entryAt(url, 'a'))!.ModifyIndex
    expect(new Set(await Promise.all(held))).toEqual(new Set([after]))
    expect(reads.mock.calls.length).toBeLessThan(1100)
  }, 300_000)

  it('ends a blocking query after its wait, with the same index', async () => {
    const { url, clock } = scene
    await put(url, 'kv/a', 'x')
    const { ModifyIndex } = (await entryAt(url, 'a'))!
    const timers = vi.spyOn(clock, 'timer')
    const waiting = fetch(`${url}/kv/a?index=${ModifyIndex}&wait=10s`)
    await expect.poll(() => timers.mock.calls.length).toBeGreaterThan(0)
    await clock.advance(10_000)
    const response = await waiting
    expect(Number(response.headers.get('x-consul-index'))).toBe(ModifyIndex)
  })

  it('answers a wait for an index that never was with the real one', async () => {
    const { url, clock } = scene
    await put(url, 'kv/a', 'x')
    const { ModifyIndex } = (await entryAt(url, 'a'))!
    const timers = vi.spyOn(clock, 'timer')
    const waiting = fetch(`${url}/kv/a?index=123456789&wait=10s`)
    await expect.poll(() => timers.mock.calls.length).toBeGreaterThan(0)
    await clock.advance(10_000)
    expect(Number((await waiting).headers.get('x-consul-index'))).toBe(ModifyIndex)
  })

  it('reports a change that happened between two pages of a list', async () => {
    const { url, store } = scene
    const keys = Array.from({ length: 1001 }, (_, at) => `kv/many/${String(at).padStart(4, '0')}`)
    for (const key of keys) {
      const claims = [{ key: `consul/${key}`, value: '{"f":0,"l":0}\nx' }]
      await store.grant({ holder: 'consul-kv', ttl: Infinity, claims })
    }
    const read = store.read.bind(store)
    let isBetween = false
    vi.spyOn(store, 'read').mockImplementation(async (query) => {
      if ('after' in query && query.after !== undefined && !isBetween) {
        isBetween = true
        // In this order, so that the second page has a later change than the first.
        await put(url, keys[0]!, 'changed')
        await put(url, keys[1000]!, 'later')
      }
      return read(query)
    })
    const first = await fetch(`${url}/kv/many?recurse`)
    const index = Number(first.headers.get('x-consul-index'))
    const values = ((await first.json()) as { Value: string }[]).map(({ Value }) => atob(Value))
    expect([values[0], values[1000]]).toEqual(['x', 'later'])
    const next = (await (await fetch(`${url}/kv/many?recurse&index=${index}`)).json()) as {
      Value: string
    }[]
    expect(atob(next[0]!.Value)).toBe('changed')
  })

  it('refuses web pages, wrong indexes, and what it does not have', async () => {
    const { url } = scene
    const status = async (path: string, headers = {}) =>
      (await fetch(`${url}/${path}`, { headers })).status
    expect(await status('kv/a', { origin: 'http://example.org' })).toBe(403)
    expect(await status('kv/a?index=x')).toBe(400)
    expect(await status('kv/a?index=1&wait=soon')).toBe(400)
    expect(await status('query')).toBe(501)
    expect(await put(url, 'kv/a?cas=1&acquire=x')).toMatch(/Conflicting flags/)
  })
})
