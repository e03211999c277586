import { Leasehold } from 'leasehold'
import { isLeaseholdError } from 'leasehold/port'
import { remoteStore, STREAM_PATH } from 'leasehold/remote'
import { afterAll, describe, expect, it } from 'vitest'
import { epochOf } from '../../src/index.ts'
import { Place, ServerProcess } from '../setup/server-process.ts'
import { silentUpgrade } from './silent-upgrade.ts'

const place = new Place()
afterAll(() => place.clean())

describe('leasehold serve', () => {
  it('prints its address, its store and the folder of the data, and is ready', async () => {
    const folder = await place.folder()
    const server = await new ServerProcess(`file:${folder}`).start()
    expect(server.lines).toEqual([
      expect.stringMatching(/^Leasehold listens on http:\/\/127\.0\.0\.1:\d+$/),
      '  store: file, durable',
      `  data:  ${folder}`,
    ])
    for (const path of ['/healthz', '/readyz']) {
      expect((await fetch(server.url + path)).status).toBe(200)
    }
    expect(await server.end('SIGTERM')).toBe(0)
  })

  it('refuses a store that it cannot open, and a port in use, in one line', async () => {
    const server = await place.server('memory:')
    await expect(new ServerProcess('redis:x').start()).rejects.toThrow(
      /leasehold: store is "redis:x": use one of 'file:\.\/data', .*\n$/,
    )
    const twin = new ServerProcess('memory:')
    twin.port = server.port
    await expect(twin.start()).rejects.toThrow(/leasehold: 127\.0\.0\.1:\d+ is already in use/)
  })

  it('answers pending requests when it is stopped, and loses none of them', async () => {
    const server = await place.server()
    const store = await remoteStore(server.url, { timeout: '30s' })
    const granted = await store.grant({ holder: 'a', ttl: 60_000 })
    if (granted.outcome !== 'granted') throw new Error('not granted')
    const { lease } = granted
    const calls = Array.from({ length: 2000 }, (_, at) =>
      store.claim({ lease, claims: [{ key: `k/${at}` }], request: `r${at}` }),
    )
    await calls[0]
    const ended = server.end('SIGTERM')
    // Requests that were not executed any more are sent again, to the next server.
    expect(await ended).toBe(0)
    await server.start()
    const tokens = (await Promise.all(calls)).map((it) => (it.outcome === 'claimed' ? it.token : 0))
    expect(new Set(tokens).size).toBe(2000)
    expect(Math.min(...tokens)).toBeGreaterThan(0)
    expect((await store.read({ lease })).lease?.claims).toBe(2000)
    await store.close()
  })

  it('stops at once on a second signal, even a different one', async () => {
    const server = await place.server(undefined, ['--log-level', 'info'])
    // A client that does not answer, so that stopping takes a while.
    const socket = await silentUpgrade(server.url, STREAM_PATH)
    server.signal('SIGTERM')
    await server.said(/stopping/)
    expect(await server.end('SIGINT')).toBe('SIGINT')
    socket.destroy()
  })

  it('keeps a lock of a client across a stop and a start', async () => {
    const server = await place.server()
    const leasehold = await Leasehold.open(server.url, { holder: 'a', callTimeout: '20s' })
    const lock = await leasehold.lock('key', { ttl: '30s' })
    const { token } = lock
    expect(await server.end('SIGTERM')).toBe(0)
    await server.start()
    await lock.renew()
    expect([lock.state, lock.token]).toEqual(['held', token])
    await leasehold.close()
  })
})

describe('a memory store behind the server', () => {
  it('gives higher tokens after a restart, and knows none of the old leases', async () => {
    const server = await place.server('memory:')
    const store = await remoteStore(server.url, { timeout: '30s' })
    const hold = () => store.grant({ holder: 'a', ttl: 60_000, claims: [{ key: 'k' }] })
    const old = await hold()
    await server.end('SIGKILL')
    await server.start()
    const next = await hold()
    if (old.outcome !== 'granted' || next.outcome !== 'granted') throw new Error('not granted')
    expect(next.token).toBeGreaterThan(old.token)
    expect(next.lease).not.toBe(old.lease)
    expect((await store.renew([old.lease])).lost).toEqual([{ lease: old.lease }])
    const release = store.release({ lease: old.lease, keys: ['k'], token: old.token })
    await expect(release).rejects.toSatisfy((it) => isLeaseholdError(it, 'lease-not-found'))
    await store.close()
  })

  it('starts its tokens at the time, with room for two million changes a second', () => {
    const now = Date.UTC(2026, 10, 16)
    expect(epochOf(now + 1) - epochOf(now)).toBeGreaterThanOrEqual(2000)
    expect(Number.isSafeInteger(epochOf(Date.UTC(2100, 0, 1)) + 2 ** 40)).toBe(true)
  })
})
