import { systemClock } from 'leasehold/port'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { link, WebSocketClient } from '../../../dashboard/live/browser-socket.ts'

/** As much of a browser's socket as the page uses; the test says when something happens. */
class FakeSocket {
  static readonly OPEN = 1
  static readonly CLOSED = 3
  readyState = 0
  bufferedAmount = 0
  onopen: () => void = () => {}
  onclose: ((event: { code: number; reason: string }) => void) | null = null
  constructor() {
    made.push(this)
  }
  send(): void {}
  close(): void {}
}

let made: FakeSocket[] = []

beforeEach(() => {
  made = []
  vi.stubGlobal('WebSocket', FakeSocket)
})

afterEach(() => {
  vi.unstubAllGlobals()
  link.closed = () => {}
})

const events = { opened: () => {}, text: () => {}, drained: () => {}, closed: () => {} }
const open = () => {
  const options = { clock: systemClock, timeout: 1000, silence: 1000 }
  const client = new WebSocketClient(new URL('http://localhost/v1/stream'), options, events)
  const socket = made.at(-1)!
  socket.readyState = 1
  socket.onopen()
  return { client, socket }
}

it('reports a broken stream to the page, but not one that the page has closed', async () => {
  const reasons: string[] = []
  link.closed = (reason) => void reasons.push(reason)
  const former = open()
  former.client.close(1000, 'the client was closed')
  const next = open()
  // The goodbye of the previous stream is answered late, when the page uses the next one.
  former.socket.onclose?.({ code: 1000, reason: 'late' })
  expect(reasons).toEqual([])
  next.socket.onclose?.({ code: 1006, reason: 'broken' })
  expect(reasons).toEqual(['broken'])
})
