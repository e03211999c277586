import { connect } from 'node:net'
import { memoryStore } from 'leasehold/memory'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Reader, Scene, until } from './scene.ts'

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
  it('come one message for each revision, with the revision as their id', async () => {
    const reader = await events('prefix=e/')
    const { event, id, data } = (await reader.next())!
    expect([event, id]).toEqual(['watching', String(data.revision)])
    const token = await hold('e/1')
    await hold('other')
    await scene.ask('POST /v1/leases', { ttl: '30s', claims: [{ key: 'e/2' }, { key: 'e/3' }] })
    const first = (await reader.next())!
    expect(first).toMatchObject({ event: 'changes', id: String(token) })
    expect(first.data.events).toMatchObject([{ type: 'claimed', key: 'e/1', token }])
    const second = (await reader.next())!
    expect(second.data.events.map((it: { key: string }) => it.key)).toEqual(['e/2', 'e/3'])
    reader.close()
    await until(() => scene.server.httpStats.streams === 0)
  })

  it('go on after the last one that was read, without a gap', async () => {
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

  it('that are kept no more are told as compacted, with what to do', async () => {
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

  it('of a lease tell its owner what concerns it', async () => {
    const { lease } = (await scene.ask('POST /v1/locks/own')).body
    const reader = await events(`lease=${lease}`)
    expect(await reader.next()).toMatchObject({ event: 'standing', id: undefined })
    await scene.ask(`DELETE /v1/leases/${lease}?by=ops&why=x`)
    expect(await reader.next()).toMatchObject({ event: 'gone', data: { end: { by: 'ops' } } })
    expect(await reader.next()).toBeUndefined()
  })

  it('are refused with a status where they cannot begin', async () => {
    const wrong = await scene.ask('GET /v1/events', undefined, { 'last-event-id': 'x' })
    expect(wrong).toMatchObject({ status: 400, body: { code: 'invalid-argument' } })
    expect((await scene.ask('GET /v1/events?lease=1.1&from=3')).status).toBe(400)
    const own = await Scene.open({ http: { streams: 1 } })
    const reader = await Reader.open(`${own.server.url}/v1/events`)
    expect(await own.ask('GET /v1/events')).toMatchObject({ status: 429 })
    reader.close()
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

  it('cut off a reader that does not read, and nobody else', async () => {
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
    expect((await own.ask('GET /v1/keys/big')).status).toBe(200)
    slow.destroy()
    await own.close()
  })
})
