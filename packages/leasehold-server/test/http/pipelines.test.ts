import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createServer, type LeaseServer } from '../../src/index.ts'

let inner: LeaseStore
let server: LeaseServer

beforeEach(async () => {
  inner = memoryStore()
  server = await createServer({ store: inner, port: 0 })
  await inner.grant({ holder: 'holder', ttl: 600_000, claims: [{ key: 'k' }] })
})

afterEach(async () => {
  await server.close()
  await inner.close()
})

const WAIT = 'POST /v1/locks/k?wait=60s&ttl=60s HTTP/1.1\r\nhost: localhost\r\n\r\n'
const READ = 'GET /v1/keys/k HTTP/1.1\r\nhost: localhost\r\n\r\n'

async function open(): Promise<Socket> {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 20_000 })
const count = async () => (await inner.read({ key: 'k' })).count

describe('requests that are sent before earlier ones are answered', () => {
  it('leave nothing behind when their client goes', async () => {
    const socket = await open()
    socket.write(WAIT.repeat(10))
    await eventually(async () => expect(await count()).toBe(11))
    socket.destroy()
    await eventually(async () => expect(await count()).toBe(1))
    expect(server.httpStats.waiting).toBe(0)
  })

  it('are cut off if they are many, and leave nothing behind either', async () => {
    const socket = await open()
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.resume()
    socket.write(WAIT.repeat(12_000))
    await closed
    await eventually(async () => expect(await count()).toBe(1))
    const begun = performance.now()
    await server.close()
    expect(performance.now() - begun, 'nothing is waited for').toBeLessThan(3000)
  })

  it('leave nothing behind even if their answers have accumulated', async () => {
    const socket = await open()
    socket.write(WAIT + READ.repeat(900))
    await eventually(async () => expect(server.httpStats.requests).toBeGreaterThan(20))
    socket.destroy()
    await eventually(async () => expect(await count()).toBe(1))
  })

  it('are answered in order', async () => {
    const socket = await open()
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes
    })
    socket.write(WAIT.replace('wait=60s', 'wait=1ms') + READ.repeat(5))
    await eventually(() => expect(text.match(/HTTP\/1\.1 \d+/g)).toHaveLength(6))
    expect(text.match(/HTTP\/1\.1 \d+/g)?.slice(1)).toEqual(Array(5).fill('HTTP/1.1 200'))
    socket.destroy()
  })
})
