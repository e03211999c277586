import { afterEach, beforeEach, expect, it } from 'vitest'
import { OPCODE } from '../../../src/stores/remote/frames.ts'
import type { WebSocketClient } from '../../../src/stores/remote/web-socket.ts'
import { RawServer } from './raw-web-socket.ts'

/** How a WebSocket behaves if the server does not read. */
let server: RawServer

beforeEach(async () => {
  server = await RawServer.start()
})

afterEach(() => server.close())

const LARGE = 'x'.repeat(1 << 19)

/** Sends more than the buffers of the machine hold. Returns how many characters that were. */
function fill(client: WebSocketClient): number {
  let sent = 2
  while (client.send(LARGE)) sent++
  client.send(LARGE)
  return sent * LARGE.length
}

it('reports when there is no room, and when there is room again', async () => {
  const { client, socket, heard } = await server.open()
  expect(client.send('x')).toBe(true)
  socket.pause()
  fill(client)
  expect(client.send('y')).toBe(false)
  expect(heard.drained).toBe(0)
  socket.resume()
  await server.until(() => heard.drained > 0)
  expect(client.send('z')).toBe(true)
})

it("does not answer the server's pings, because the pongs would fill the memory", async () => {
  const { client, socket, heard, end, clock } = await server.open()
  socket.pause()
  fill(client)
  socket.write(Buffer.from([0x89, 0, 0x81, 2, 0x6f, 0x6b]))
  await server.until(() => heard.texts.length > 0)
  client.close(1000, '')
  await clock.advance(1000)
  socket.resume()
  await server.until(() => end.isOver)
  expect(end.opcodes).not.toContain(OPCODE.pong)
  expect(end.opcodes.at(-1)).toBe(OPCODE.close)
})

it('closes after a while, although not everything was sent', async () => {
  const { client, socket, heard, end, clock } = await server.open({ silence: 500 })
  socket.pause()
  const sent = fill(client)
  await clock.advance(1000)
  expect(heard.closed).toEqual([[1006, expect.any(String)]])
  expect(clock.keepsRunning).toBe(false)
  await clock.advance(1000)
  socket.resume()
  await server.until(() => end.isOver)
  expect(end.received.length).toBeLessThan(sent)
})
