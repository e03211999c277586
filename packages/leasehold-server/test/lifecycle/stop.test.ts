import { memoryStore } from 'leasehold/memory'
import type { LeaseStore, Query, Watch } from 'leasehold/port'
import { remoteStore, STREAM_PATH } from 'leasehold/remote'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createServer, type LeaseServer } from '../../src/index.ts'
import { changedStore, Gate } from '../setup/changed-store.ts'
import { silentUpgrade } from './silent-upgrade.ts'

/** The maximum time of a stop: the server does not wait for silent clients. */
const SOON_MS = 4000

describe('a server that stops', () => {
  let store: LeaseStore
  let server: LeaseServer

  beforeEach(async () => {
    store = memoryStore()
    server = await createServer({ store, port: 0 })
  })

  afterEach(async () => {
    await server.close()
    await store.close()
  })

  it.each([
    ['was turned away', '/elsewhere'],
    ['has a stream', STREAM_PATH],
    ['looks at the dashboard', '/dashboard/feed'],
  ])(
    'does not wait for a client that %s and is silent',
    { timeout: 60_000 },
    async (_who, path) => {
      const socket = await silentUpgrade(server.url, path)
      socket.resume()
      try {
        const begun = performance.now()
        const late = new Promise((resolve) => setTimeout(resolve, 2 * SOON_MS))
        await Promise.race([server.close(), late])
        expect(performance.now() - begun).toBeLessThan(SOON_MS)
      } finally {
        socket.destroy()
      }
    },
  )

  it('leaves no watch behind for a tied lease that was granted meanwhile', async () => {
    const gate = new Gate()
    const watched = new Set<Watch>()
    const slow = changedStore(store, {
      grant: (request) => gate.opened.then(() => store.grant(request)),
      watch: (target, observer) => {
        const inner = store.watch(target, observer)
        const watch = { close: () => void [inner.close(), watched.delete(watch)] }
        watched.add(watch)
        return watch
      },
    })
    const other = await createServer({ store: slow, port: 0 })
    const client = await remoteStore(other.url, { tied: true })
    const granted = client.grant({ holder: 'me', ttl: 60_000, request: 'one' })
    await vi.waitFor(() => expect(other.stats.requests).toBe(1))
    const closed = other.close()
    gate.open()
    await granted
    await closed
    await client.close()
    expect(watched.size).toBe(0)
  })
})

describe('a client that waits for a slow store', () => {
  it('is not taken for silent while the server does not listen to it', async () => {
    const store = memoryStore()
    const gate = new Gate()
    const held = (query: Query) => 'key' in query && query.key === 'slow'
    const slow = changedStore(store, {
      read: (query) =>
        (held(query) ? gate.opened : Promise.resolve()).then(() => store.read(query)),
    })
    const server = await createServer({ store: slow, port: 0, stream: { silence: 300 } })
    const client = await remoteStore(server.url)
    const readings = Array.from({ length: 40 }, () => client.read({ key: 'slow' }))
    await new Promise((resolve) => setTimeout(resolve, 1200))
    gate.open()
    await Promise.all(readings)
    expect(server.stats.connected).toBe(1)
    await client.close()
    await server.close()
    await store.close()
  })
})
