import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { STREAM_PATH } from 'leasehold/remote'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServer, type LeaseServer } from '../src/index.ts'

/** What a server that stops may take at the most: it waits for nobody who says nothing. */
const SOON_MS = 4000

/** Asks for a WebSocket, and then neither says anything nor closes its own half. */
async function silentUpgrade(url: string, path: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  socket.on('error', () => {})
  await once(socket, 'connect')
  const lines = [
    `GET ${path} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    'connection: upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  await once(socket, 'data')
  return socket
}

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
  ])('does not wait for one who %s and says nothing', { timeout: 60_000 }, async (_who, path) => {
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
  })
})
