import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { remoteStore, STREAM_PATH } from 'leasehold/remote'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { createServer, type LeaseServer } from '../../src/index.ts'

let inner: LeaseStore
let server: LeaseServer
/** A proxy between client and server that counts the messages in each frame of the client. */
let tap: WebSocketServer
let store: LeaseStore
let frames: number[] = []

beforeAll(async () => {
  inner = memoryStore()
  server = await createServer({ store: inner, port: 0, stream: { inFlight: 200 } })
  tap = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  tap.on('connection', async (client) => {
    const there = new WebSocket(server.url.replace('http', 'ws') + STREAM_PATH)
    client.on('message', (data) => {
      frames.push(JSON.parse(String(data)).length)
      if (there.readyState === WebSocket.OPEN) there.send(String(data))
      else there.once('open', () => there.send(String(data)))
    })
    there.on('message', (data) => client.send(String(data)))
    client.on('close', () => there.close())
  })
  await once(tap, 'listening')
  store = await remoteStore(`http://127.0.0.1:${(tap.address() as AddressInfo).port}`)
})

afterAll(async () => {
  await store.close()
  tap.close()
  await server.close()
  await inner.close()
})

beforeEach(() => {
  frames = []
})

const ask = (count: number) =>
  Promise.all(Array.from({ length: count }, (_, number) => store.read({ key: `k/${number}` })))

describe('the requests of one turn', () => {
  it('leaves in one frame', async () => {
    await ask(10)
    expect(frames).toEqual([10])
  })

  it('are sent 64 at a time if there are more, so that the server can start', async () => {
    await ask(150)
    expect(frames).toEqual([64, 64, 22])
  })

  it('that exceed the limit of pending requests wait, and are answered in the end', async () => {
    expect(await ask(1000)).toHaveLength(1000)
    expect(frames.slice(0, 3)).toEqual([64, 64, 64])
    expect(frames.reduce((sum, each) => sum + each, 0)).toBe(1000)
  })
})
