import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLOSE } from '../../../src/stores/remote/index.ts'
import { WebSocketClient } from '../../../src/stores/remote/standard-web-socket.ts'
import { SeededRandom, TestClock } from '../../../src/testing/index.ts'

/** The WebSocket of a page, whose server is the test. */
class PageSocket {
  readonly url: string
  readonly protocols: readonly string[]
  readonly sent: string[] = []
  bufferedAmount = 0
  closedWith: readonly (number | string | undefined)[] | undefined
  onopen: (() => void) | null = null
  onmessage: ((event: { data: string }) => void) | null = null
  onclose: ((event: { code: number; reason: string }) => void) | null = null

  constructor(url: URL, protocols: readonly string[]) {
    this.url = String(url)
    this.protocols = protocols
    made.push(this)
  }

  send(text: string): void {
    this.sent.push(text)
  }

  close(code?: number, reason?: string): void {
    this.closedWith = [code, reason]
  }
}

const made: PageSocket[] = []
const original = globalThis.WebSocket
beforeAll(() => {
  globalThis.WebSocket = PageSocket as unknown as typeof WebSocket
})
afterAll(() => {
  globalThis.WebSocket = original
})

function connect(headers: Record<string, string> = {}) {
  const clock = new TestClock()
  const heard: unknown[] = []
  const limits = { timeout: 5000, messageBytes: 1 << 20, silence: 1000, keepAlive: true }
  const client = new WebSocketClient(
    new URL('https://host:7420/v1/stream'),
    { clock, random: new SeededRandom(1), headers, ...limits },
    {
      opened: () => heard.push('opened'),
      text: (text) => heard.push(text),
      drained: () => heard.push('drained'),
      closed: (code, reason) => heard.push([code, reason]),
    },
  )
  return { clock, client, heard, socket: made.at(-1)! }
}

function opened() {
  const one = connect()
  one.socket.onopen!()
  one.heard.length = 0
  return one
}

describe('the WebSocket of a page', () => {
  it('sends the access token as a subprotocol', () => {
    const { socket } = connect({ authorization: 'Bearer lh_a_b' })
    expect(socket.url).toBe('wss://host:7420/v1/stream')
    expect(socket.protocols).toEqual(['leasehold', 'leasehold.access-token.lh_a_b'])
    expect(connect().socket.protocols).toEqual([])
  })

  it('gives up if the server does not answer in time', async () => {
    const { clock, heard } = connect()
    await clock.advance(4999)
    expect(heard).toEqual([])
    await clock.advance(1)
    expect(heard).toEqual([[1006, expect.stringContaining('5000 ms')]])
  })

  it('asks a silent server, and gives it up after a second silence', async () => {
    const { clock, heard, socket } = opened()
    socket.onmessage!({ data: 'a' })
    await clock.advance(1999)
    expect([heard, socket.sent]).toEqual([['a'], []])
    await clock.advance(1)
    expect(socket.sent).toHaveLength(1)
    await clock.advance(999)
    expect(heard).toEqual(['a'])
    await clock.advance(1)
    expect(heard.at(-1)).toEqual([1006, expect.stringContaining('2000 ms')])
    expect(socket.closedWith?.[0]).toBe(CLOSE.done)
  })

  it('reads what arrived during a stall of the page before it gives up', async () => {
    const { clock, heard, socket } = opened()
    await clock.advance(1000)
    const { defer } = clock
    clock.defer = (run) => {
      socket.onmessage?.({ data: 'here' })
      defer.call(clock, run)
    }
    await clock.advance(1000)
    await clock.advance(999)
    expect(heard).toEqual(['here'])
  })

  it('reports when there is room again', async () => {
    const { client, clock, heard, socket } = opened()
    expect(client.send('x')).toBe(true)
    socket.bufferedAmount = 2 << 20
    expect(client.send('x')).toBe(false)
    await clock.advance(20)
    expect(heard).toEqual([])
    socket.bufferedAmount = 0
    await clock.advance(20)
    expect(heard).toEqual(['drained'])
  })

  it('closes with the answer of the server, or without it after a second', async () => {
    const polite = opened()
    polite.client.close(CLOSE.moved, 'away')
    expect(polite.socket.closedWith).toEqual([CLOSE.moved, 'away'])
    polite.socket.onclose!({ code: CLOSE.moved, reason: '' })
    expect(polite.heard).toHaveLength(1)
    const frozen = opened()
    frozen.client.close(CLOSE.done, 'x'.repeat(200))
    expect(frozen.socket.closedWith).toEqual([CLOSE.done, ''])
    await frozen.clock.advance(1000)
    expect(frozen.heard).toEqual([[CLOSE.done, expect.any(String)]])
  })
})
