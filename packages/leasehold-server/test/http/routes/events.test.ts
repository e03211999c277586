import { connect } from 'node:net'
import { memoryStore } from 'leasehold/memory'
import { type Event, LeaseholdError } from 'leasehold/port'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { changedStore } from '../../setup/changed-store.ts'
import { Reader, Scene, until } from '../scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await Scene.open()
})
afterAll(() => scene.close())

async function hold(key: string): Promise<number> {
  return (await scene.ask(`POST /v1/locks/${key}`)).body.token
}

function events(query: string, headers?: Record<string, string>): Promise<Reader> {
  return Reader.open(`${scene.server.url}/v1/events?${query}`, headers)
}

describe('events', () => {
  it('arrive as one message per revision, with the revision as the id', async () => {
    const reader = await events('prefix=e/')
    const { event, id, data } = (await reader.next())!
    expect([event, id]).toEqual(['watching', String(data.revision)])
    const token = await hold('e/1')
    await hold('other')
    await scene.ask('POST /v1/leases', { ttl: '30s', claims: [{ key: 'e/2' }, { key: 'e/3' }] })
    const first = (await reader.next())!
    expect(first).toMatchObject({ event: 'changes', id: String(token) })
    const one = { key: 'e/1', token }
    expect(first.data.events).toMatchObject([
      { type: 'claimed', ...one },
      { type: 'held', ...one },
    ])
    const second = (await reader.next())!
    const keys = second.data.events.map((it: { key: string }) => it.key)
    expect(new Set(keys)).toEqual(new Set(['e/2', 'e/3']))
    reader.close()
    await until(() => scene.server.httpStats.streams === 0)
  })

  it('name the next holder in the revision that frees the key', async () => {
    const reader = await events('prefix=next/')
    const claims = [{ key: 'next/1' }]
    const claim = async (holder: string) =>
      (await scene.ask('POST /v1/leases', { holder, ttl: '30s', claims })).body
    const { lease } = await claim('ada')
    expect((await claim('bob')).holds).toBe(false)
    await scene.ask(`DELETE /v1/leases/${lease}`)
    const seen: string[][] = []
    while (seen.length < 4) {
      const { data } = (await reader.next())!
      seen.push((data.events ?? []).map((it: Event) => `${it.type} by ${it.holder}`))
    }
    expect(seen.slice(1)).toEqual([
      ['claimed by ada', 'held by ada'],
      ['claimed by bob'],
      ['removed by ada', 'held by bob'],
    ])
    reader.close()
  })

  it('are those of all keys without a prefix', async () => {
    const reader = await events('')
    expect((await reader.next())?.event).toBe('watching')
    const token = await hold('any/1')
    expect((await reader.next())?.data.events[0]).toMatchObject({ key: 'any/1', token })
    reader.close()
  })

  it('continue after the last one that was read, without a gap', async () => {
    // A revision of two digits.
    while ((await hold('r/0')) < 10) await scene.ask('DELETE /v1/keys/r/0')
    const first = await hold('r/1')
    const tokens = [await hold('r/2'), await hold('r/3')]
    for (const reader of [
      await events('prefix=r/', { 'last-event-id': String(first) }),
      await events(`prefix=r/&from=${first}`),
      await events('prefix=r/&from=0', { 'last-event-id': String(first) }),
    ]) {
      expect((await reader.next())?.event).toBe('watching')
      const seen = [(await reader.next())!.id, (await reader.next())!.id]
      expect(seen).toEqual(tokens.map(String))
      reader.close()
    }
  })

  it('that are no longer kept are reported as compacted, with the fix', async () => {
    const store = memoryStore({ limits: { events: 4 } })
    const own = await Scene.open({ store })
    for (let at = 0; at < 300; at++) {
      await own.store.grant({ holder: 'a', ttl: 60_000, claims: [{ key: `c/${at}` }] })
    }
    const reader = await Reader.open(`${own.server.url}/v1/events?prefix=c/&from=1`)
    const { event, data } = (await reader.next())!
    expect([event, data.todo]).toEqual(['compacted', expect.stringContaining('prefix=c%2F')])
    expect(await reader.next()).toBeUndefined()
    await own.close()
  })

  it('of a lease report its changes to its owner', async () => {
    const { lease } = (await scene.ask('POST /v1/locks/own')).body
    const reader = await events(`lease=${lease}`)
    expect(await reader.next()).toMatchObject({ event: 'standing', id: undefined })
    await scene.ask(`DELETE /v1/leases/${lease}?by=ops&why=x`)
    expect(await reader.next()).toMatchObject({ event: 'gone', data: { end: { by: 'ops' } } })
    expect(await reader.next()).toBeUndefined()
  })

  it('are refused with a status if they cannot start', async () => {
    const refused = { status: 400, body: { code: 'invalid-argument' } }
    for (const id of ['x', '1.5', '-1', '1x', 'x1', '+1', '0x1', '1e0', '1.0', '9'.repeat(20)]) {
      const wrong = await scene.ask('GET /v1/events', undefined, { 'last-event-id': id })
      expect(wrong, id).toMatchObject(refused)
    }
    for (const query of ['from=3', 'prefix=', 'prefix=a']) {
      expect(await scene.ask(`GET /v1/events?lease=1.1&${query}`), query).toMatchObject(refused)
    }
    const resumed = await scene.ask('GET /v1/events?lease=1.1', undefined, { 'last-event-id': '1' })
    expect(resumed).toMatchObject(refused)
  })

  it('start now if the last one that was read is not named', async () => {
    await hold('now/1')
    const reader = await events('prefix=now/', { 'last-event-id': '' })
    const { event, data } = (await reader.next())!
    expect([event, data.revision]).toEqual([
      'watching',
      (await scene.store.read({ key: 'now/1' })).revision,
    ])
    reader.close()
  })

  it('watch the store while a client reads them, and no longer', async () => {
    const inner = memoryStore()
    let watches = 0
    const store = changedStore(inner, {
      watch: (target, observer) => {
        const watch = inner.watch(target, observer)
        if (!('prefix' in target) || target.prefix !== 'w/') return watch
        watches++
        return {
          close: () => {
            watches--
            watch.close()
          },
        }
      },
    })
    const own = await Scene.open({ store, http: { streams: 1 } })
    const reader = await Reader.open(`${own.server.url}/v1/events?prefix=w/`)
    const { streams, waiting } = own.server.httpStats
    expect([watches, streams, waiting]).toEqual([1, 1, 0])
    expect(await own.ask('GET /v1/events?prefix=w/')).toMatchObject({ status: 429 })
    expect(watches).toBe(1)
    reader.close()
    await until(() => own.server.httpStats.streams === 0)
    expect(watches).toBe(0)
    await own.close()
  })

  it("end with the store's reason if it ends the watch", async () => {
    const inner = memoryStore()
    const error = new LeaseholdError('storage-failed', 'the disk is away')
    const store = changedStore(inner, {
      watch: (target, observer) => {
        if ('prefix' in target && target.prefix !== 'w/') return inner.watch(target, observer)
        // It is reported although the stream was not open yet.
        observer({ type: 'watching', revision: 7 })
        setImmediate(() => observer({ type: 'interrupted', error }))
        return { close: () => {} }
      },
    })
    const own = await Scene.open({ store })
    const reader = await Reader.open(`${own.server.url}/v1/events?prefix=w/`)
    expect(await reader.next()).toEqual({ event: 'watching', id: '7', data: { revision: 7 } })
    const data = { code: 'storage-failed', detail: 'the disk is away' }
    expect(await reader.next()).toEqual({ event: 'bye', id: undefined, data })
    expect(await reader.next()).toBeUndefined()
    await own.close()
  })

  it('show that they live, and say goodbye when the server stops', async () => {
    const own = await Scene.open({ http: { heartbeat: 20 } })
    const reader = await Reader.open(`${own.server.url}/v1/events`)
    await reader.next()
    const next = reader.next()
    await until(() => reader.comments >= 3)
    await own.server.close()
    expect(await next).toMatchObject({ event: 'bye', data: { code: 'closed' } })
    expect(await reader.next()).toBeUndefined()
    await own.store.close()
  })

  it('end when the token of their reader is revoked', async () => {
    const own = await Scene.open()
    const authorization = `Bearer ${await own.token('ada', 'watch:x/')}`
    const reader = await Reader.open(`${own.server.url}/v1/events?prefix=x/`, { authorization })
    await reader.next()
    await own.server.access.tokens.revoke('ada', 'ops')
    expect(await reader.next()).toMatchObject({ event: 'bye', data: { code: 'unauthenticated' } })
    expect(await reader.next()).toBeUndefined()
    await own.close()
  })

  it('disconnect only a reader that does not read', async () => {
    const own = await Scene.open({ http: { buffered: 1 << 20 } })
    const { port, hostname } = new URL(own.server.url)
    const slow = connect(Number(port), hostname)
    slow.on('error', () => {})
    slow.write(`GET /v1/events?prefix=big HTTP/1.1\r\nhost: localhost\r\n\r\n`)
    slow.pause()
    await until(() => own.server.httpStats.streams === 1)
    const value = 'v'.repeat(60_000)
    const granted = await own.store.grant({ holder: 'a', ttl: 60_000, claims: [{ key: 'big' }] })
    if (granted.outcome !== 'granted') throw new Error('not granted')
    const { lease, token } = granted
    for (let round = 0; own.server.httpStats.dropped === 0; round++) {
      expect(round, 'it was not cut off').toBeLessThan(5000)
      await own.store.update({ lease, key: 'big', token, value })
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(own.server.httpStats.dropped).toBe(1)
    expect((await own.ask('GET /v1/keys/big')).status).toBe(200)
    slow.destroy()
    await own.close()
  })
})
