import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type Clock, systemClock, systemRandom } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { FrameReader, textFrame } from '../../../leasehold/src/stores/remote/frames.ts'
import { WebSocketClient } from '../../../leasehold/src/stores/remote/web-socket.ts'

/** Our client's end of a WebSocket against the server that nearly everyone uses. */
const http: Server = createServer((_request, response) => response.writeHead(418).end())
const sockets = new WebSocketServer({ server: http, path: '/stream', maxPayload: 64 << 20 })
let base = ''

beforeAll(async () => {
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
})

afterAll(() => {
  sockets.close()
  http.closeAllConnections()
  http.close()
})

interface Heard {
  readonly texts: string[]
  closed: { code: number; reason: string } | undefined
}

interface Pair {
  readonly client: WebSocketClient
  readonly server: WebSocket
  /** The connection under the server's end, for bytes that `ws` would not send. */
  readonly raw: Socket
  readonly heard: Heard
  until(done: (heard: Heard) => boolean): Promise<void>
}

const LIMITS = { timeout: 5000, messageBytes: 16 << 20, silence: 60_000, keepAlive: true }

type Limits = Partial<typeof LIMITS & { readonly clock: Clock }>

async function connect(limits: Limits = {}, path = '/stream'): Promise<Pair> {
  const heard: Heard = { texts: [], closed: undefined }
  let wake = () => {}
  const until = async (done: (heard: Heard) => boolean) => {
    while (!done(heard)) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  const arrived = new Promise<WebSocket>((resolve) => sockets.once('connection', resolve))
  let opened = () => {}
  const open = new Promise<void>((resolve) => {
    opened = resolve
  })
  const options = { clock: systemClock, random: systemRandom, ...LIMITS, ...limits }
  const client = new WebSocketClient(new URL(path, base), options, {
    opened,
    text: (text) => {
      heard.texts.push(text)
      wake()
    },
    drained: () => wake(),
    closed: (code, reason) => {
      heard.closed = { code, reason }
      wake()
    },
  })
  await Promise.race([open, until(({ closed }) => closed !== undefined)])
  const server = heard.closed ? (undefined as unknown as WebSocket) : await arrived
  const raw = (server as unknown as { _socket: Socket } | undefined)?._socket as Socket
  return { client, server, raw, heard, until }
}

describe('our WebSocket client', () => {
  it.each([0, 1, 125, 126, 127, 1000, 65_535, 65_536, 3_000_001])(
    'sends and receives a string of %i characters completely',
    async (length) => {
      const { client, server, heard, until } = await connect()
      const text = 'aß€😀'
        .repeat(Math.ceil(length / 5))
        .slice(0, length)
        .toWellFormed()
      server.on('message', (data) => server.send(String(data)))
      client.send(text)
      await until(({ texts }) => texts.length === 1)
      expect(heard.texts[0] === text).toBe(true)
      client.close(1000, '')
    },
  )

  it('puts fragments together, with a ping between them', async () => {
    const { client, server, heard, until } = await connect()
    const ponged = new Promise((resolve) => server.once('pong', (data) => resolve(String(data))))
    // In the middle of a character: the bytes are put together, not the texts.
    const bytes = Buffer.from('one €')
    server.send(bytes.subarray(0, 5), { fin: false, binary: false })
    server.ping('are you there?')
    server.send(bytes.subarray(5), { fin: false, binary: false })
    server.send(Buffer.from(' two'), { fin: true, binary: false })
    await until(({ texts }) => texts.length === 1)
    expect(heard.texts).toEqual(['one € two'])
    expect(await ponged).toBe('are you there?')
    client.close(1000, '')
  })

  it("says goodbye with a code and a reason, and receives the other side's", async () => {
    const one = await connect()
    const left = new Promise((resolve) => {
      one.server.once('close', (code, reason) => resolve([code, String(reason)]))
    })
    one.client.close(1000, 'done')
    expect(await left).toEqual([1000, 'done'])
    const other = await connect()
    other.server.close(4003, 'too slow')
    await other.until(({ closed }) => closed !== undefined)
    expect(other.heard.closed).toEqual({ code: 4003, reason: 'too slow' })
  })

  it('says why there is no stream', async () => {
    const { heard } = await connect({}, '/elsewhere')
    expect(heard.closed?.reason).toMatch(/answered with 4\d\d instead of a stream/)
  })

  it.each([
    ['a masked frame', Buffer.from([0x81, 0x81, 0, 0, 0, 0, 65]), 1002],
    ['an extension', Buffer.from([0xc1, 1, 65]), 1002],
    ['a binary frame', Buffer.from([0x82, 1, 65]), 1003],
    ['an unknown opcode', Buffer.from([0x83, 0]), 1003],
    ['a fragment without a beginning', Buffer.from([0x80, 1, 65]), 1002],
    ['a beginning within a message', Buffer.from([0x01, 1, 65, 0x81, 1, 65]), 1002],
    ['a ping in fragments', Buffer.from([0x09, 0]), 1002],
    ['a ping that is too long', Buffer.from([0x89, 126, 0, 126]), 1002],
    ['a string that is not UTF-8', Buffer.from([0x81, 1, 0xff]), 1007],
    ['a message that is too large', Buffer.from([0x81, 127, 0, 0, 0, 0, 1, 0, 0, 1]), 1009],
  ])('refuses %s', async (_name, bytes, code) => {
    const { raw, heard, until } = await connect()
    raw.write(bytes)
    await until(({ closed }) => closed !== undefined)
    expect(heard.closed?.code).toBe(code)
  })

  it('notices that the other side is gone', async () => {
    const { raw, heard, until } = await connect({ silence: 50 })
    raw.pause()
    await until(({ closed }) => closed !== undefined)
    expect(heard.closed?.reason).toMatch(/it was silent for 100 ms/)
  })

  it('stays with a server that only answers its pings', async () => {
    const { client, server, heard, until } = await connect({ silence: 30 })
    let pings = 0
    await new Promise<void>((resolve) => {
      server.on('ping', () => {
        if (++pings === 4) resolve()
      })
    })
    expect(heard.closed).toBeUndefined()
    client.close(1000, '')
    await until(({ closed }) => closed !== undefined)
  })

  it('does not ping a server that is about to answer, and pings one that then does not', async () => {
    const clock = new TestClock()
    const { client, server, until } = await connect({ clock, silence: 1000 })
    const seen: string[] = []
    server.on('ping', () => seen.push('asked'))
    server.on('message', (data) => seen.push(String(data)))
    for (const beat of ['one', 'two', 'three']) {
      await clock.advance(999)
      const message = once(server, 'message')
      client.send(beat)
      await clock.advance(100)
      await message
      if (beat === 'three') break
      server.send(beat)
      await until(({ texts }) => texts.at(-1) === beat)
    }
    const ping = once(server, 'ping')
    await clock.advance(100)
    await ping
    expect(seen).toEqual(['one', 'two', 'three', 'asked'])
    server.terminate()
    await until(({ closed }) => closed !== undefined)
  })
})

describe('the reader of frames', () => {
  /** A frame as a server sends it: the same, but for the mask. */
  function unmasked(text: string, final = true, opcode = 1): Buffer {
    const content = Buffer.from(text)
    const { length } = content
    const header =
      length < 126 ? Buffer.from([0, length]) : Buffer.from([0, 126, length >> 8, length & 255])
    header[0] = (final ? 0x80 : 0) | opcode
    return Buffer.concat([header, content])
  }

  const read = (pieces: readonly Buffer[]) => {
    const heard: string[] = []
    const events = {
      text: (text: string) => heard.push(text),
      ping: (content: Buffer) => heard.push(`ping ${content}`),
      pong: () => heard.push('pong'),
      close: (code: number, reason: string) => heard.push(`close ${code} ${reason}`),
    }
    const reader = new FrameReader(events as never, 1 << 20)
    for (const piece of pieces) reader.read(piece)
    return heard
  }

  it('reads the same wherever the bytes are cut in two or three', () => {
    const bytes = Buffer.concat([
      unmasked('first €'),
      unmasked('x'.repeat(200)),
      unmasked('be', false),
      unmasked('now', true, 9),
      unmasked('gun', true, 0),
      unmasked('', true, 10),
      Buffer.from([0x88, 4, 0x0f, 0xa3, 0x6f, 0x6b]),
    ])
    const whole = ['first €', 'x'.repeat(200), 'ping now', 'begun', 'pong', 'close 4003 ok']
    expect(read([bytes])).toEqual(whole)
    expect(read([...bytes].map((byte) => Buffer.from([byte])))).toEqual(whole)
    for (let cut = 1; cut < bytes.length; cut++) {
      const rest = bytes.subarray(cut)
      expect(read([bytes.subarray(0, cut), rest])).toEqual(whole)
      const half = rest.length >> 1
      const three = [bytes.subarray(0, cut), rest.subarray(0, half), rest.subarray(half)]
      expect(read(three)).toEqual(whole)
    }
  })

  it('masks every byte that it writes', () => {
    const mask = 0x8899aabb | 0
    for (const length of [0, 1, 2, 3, 4, 5, 7, 126]) {
      const text = 'abcdefg'.repeat(20).slice(0, length)
      const frame = textFrame(text, mask)
      const start = frame.length - length
      expect(frame.readInt32LE(start - 4)).toBe(mask)
      const content = frame.subarray(start).map((byte, at) => byte ^ frame[start - 4 + (at & 3)]!)
      expect(Buffer.from(content).toString()).toBe(text)
    }
  })
})
