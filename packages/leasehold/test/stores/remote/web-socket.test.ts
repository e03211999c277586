import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemRandom } from '../../../src/port/index.ts'
import { closing, OPCODE } from '../../../src/stores/remote/frames.ts'
import { CLOSE, remoteStore } from '../../../src/stores/remote/index.ts'
import { accepting, RawServer } from './raw-web-socket.ts'
import { RunningClock } from './running-clock.ts'

const text = (content: string) => Buffer.from([0x81, content.length, ...Buffer.from(content)])
const ping = (content: string) => Buffer.from([0x89, content.length, ...Buffer.from(content)])
const PONG = Buffer.from([0x8a, 0])
const goodbye = (code: number, reason: string) => {
  const content = closing(code, reason)
  return Buffer.concat([Buffer.from([0x88, content.length]), content])
}

let server: RawServer

beforeEach(async () => {
  server = await RawServer.start()
})

afterEach(() => server.close())

/** Waits until anything in transit would have arrived, to test that nothing does. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('a WebSocket that is being opened', () => {
  it('sends the request of the standard, with a new key and its own headers', async () => {
    const headers = { 'x-own': 'mine', upgrade: 'nothing' }
    const one = await server.open({ headers, random: systemRandom })
    expect(one.request).toMatchObject({ method: 'GET', url: '/stream' })
    expect(one.request.headers).toMatchObject({
      ...{ connection: 'Upgrade', upgrade: 'websocket', 'x-own': 'mine' },
      'sec-websocket-version': '13',
    })
    const keyOf = ({ request }: typeof one) => `${request.headers['sec-websocket-key']}`
    expect(Buffer.from(keyOf(one), 'base64')).toHaveLength(16)
    const other = await server.open({ random: systemRandom })
    expect(keyOf(other)).not.toBe(keyOf(one))
  })

  it('delivers bytes that came in the same packet as the answer, after it is open', async () => {
    server.answer = (request, socket) => {
      socket.write(Buffer.concat([Buffer.from(accepting(request)), text('at once')]))
    }
    const { heard } = await server.open()
    await server.until(() => heard.texts.length > 0)
    expect(heard).toMatchObject({ opened: 1, texts: ['at once'], closed: [] })
  })

  it('refuses a server with a wrong answer to its key, and closes the connection', async () => {
    server.answer = (request, socket) => {
      request.headers['sec-websocket-key'] = 'another'
      socket.write(Buffer.concat([Buffer.from(accepting(request)), text('hello')]))
    }
    const { heard } = server.connect()
    const { end } = await server.arrived()
    await server.until(() => end.isOver)
    expect(heard).toMatchObject({ opened: 0, texts: [], closed: [[1006, expect.any(String)]] })
  })

  it.each([
    [
      { 'www-authenticate': 'Bearer error="x", error_description="it has expired"' },
      'it has expired',
    ],
    [{ 'www-authenticate': 'Bearer error_description=""' }, ''],
    [{ 'www-authenticate': 'Bearer' }, 'the server requires an access token'],
    [{}, 'the server requires an access token'],
  ])('reports why the server rejects it: %j', async (headers, why) => {
    server.answer = (_request, socket) => {
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      socket.end(`HTTP/1.1 401 No\r\n${lines.join('')}content-length: 0\r\n\r\n`)
    }
    const { heard } = server.connect()
    await server.until(() => heard.closed.length > 0)
    expect(heard).toMatchObject({ opened: 0, closed: [[CLOSE.unauthenticated, why]] })
  })

  it('reports any other answer of the server', async () => {
    server.answer = (_request, socket) => {
      socket.end('HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n')
    }
    const { heard } = server.connect()
    await server.until(() => heard.closed.length > 0)
    expect(heard.closed).toEqual([[1006, expect.stringContaining('403')]])
  })

  it('reports that nothing listens there', async () => {
    server.close()
    const { heard } = server.connect({}, 'http://127.0.0.1:1/stream')
    await server.until(() => heard.closed.length > 0)
    expect(heard.closed).toEqual([[1006, expect.stringContaining('ECONNREFUSED 127.0.0.1:1')]])
  })

  it('reports the error of each address that it tried', async () => {
    const addresses = ['127.0.0.2', '127.0.0.3'].map((address) => ({ address, family: 4 }))
    const lookup = (_host: string, _options: object, found: (...found: unknown[]) => void) =>
      found(null, addresses)
    const tls = { lookup, autoSelectFamily: true } as never
    const { heard } = server.connect({ tls }, 'http://two.example:1/stream')
    await server.until(() => heard.closed.length > 0)
    expect(heard.closed[0]?.[1]).toMatch(/127\.0\.0\.2:1, .*127\.0\.0\.3:1/)
  })

  it('gives up after its timeout, and leaves nothing behind', async () => {
    server.answer = () => {}
    const { heard, clock } = server.connect({ timeout: 3000 })
    const { end } = await server.arrived()
    await clock.advance(2999)
    expect(heard.closed).toEqual([])
    await clock.advance(1)
    expect(heard.closed).toEqual([[1006, expect.any(String)]])
    await server.until(() => end.isOver)
  })

  it('has no timeout once it is open', async () => {
    const { heard, clock, end } = await server.open({ timeout: 3000, silence: 50_000 })
    await clock.advance(49_999)
    expect([heard.closed, end.opcodes]).toEqual([[], []])
  })

  it('can be closed before it is open', async () => {
    server.answer = () => {}
    const { client, heard, clock } = server.connect()
    const { end } = await server.arrived()
    expect(client.send('nobody hears')).toBe(false)
    client.close(1000, 'not any more')
    expect(heard.closed).toEqual([[1000, 'not any more']])
    client.close(1000, 'once more')
    await server.until(() => end.isOver)
    await clock.advance(60_000)
    expect(heard).toMatchObject({ opened: 0, closed: [[1000, 'not any more']] })
  })

  it.each([
    [true, 1],
    [false, 0],
  ])(
    'keeps the process running while it is opened only if configured: %j',
    async (keepAlive, more) => {
      const keeping = () =>
        process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
      server.answer = () => {}
      await turns()
      const before = keeping()
      server.connect({ keepAlive })
      const { socket } = await server.arrived()
      socket.unref()
      expect(keeping() - before).toBe(more)
    },
  )

  it("uses TLS and checks the server's certificate", async () => {
    const file = (name: string) =>
      readFileSync(
        new URL(`../../../../leasehold-server/test/certificates/${name}`, import.meta.url),
      )
    const secure = await RawServer.start(
      createServer({ cert: file('server.pem'), key: file('server.key') }),
    )
    const url = `https://127.0.0.1:${secure.port}/stream`
    const trusting = secure.connect({ tls: { ca: file('ca.pem') } }, url)
    await secure.until(() => trusting.heard.opened > 0)
    trusting.client.close(1000, '')
    const doubting = secure.connect({}, url)
    await secure.until(() => doubting.heard.closed.length > 0)
    expect(doubting.heard).toMatchObject({ opened: 0, closed: [[1006, /certificate|signed/]] })
    secure.close()
  })
})

describe('a remote store without a WebSocket option', () => {
  it('uses this WebSocket', async () => {
    const clock = new RunningClock()
    const opening = remoteStore(`http://127.0.0.1:${server.port}`, { clock }).catch(() => {})
    const { end, request } = await server.arrived()
    await server.until(() => end.frames.length > 0)
    expect(request.url).toBe('/v1/stream')
    expect(`${end.frames[0]!.content}`).toMatch(/^\[\["hello",/)
    await clock.advance(6000)
    await opening
  })
})

describe('an open WebSocket', () => {
  it('masks every frame with a new mask', async () => {
    const { client, end } = await server.open({ random: systemRandom })
    for (let at = 0; at < 40; at++) expect(client.send(`text ${at}`)).toBe(true)
    await server.until(() => end.frames.length === 40)
    expect(new Set(end.frames.map(({ mask }) => mask)).size).toBe(40)
    expect(end.frames.map(({ content }) => `${content}`)).toEqual(
      Array.from({ length: 40 }, (_, at) => `text ${at}`),
    )
  })

  it('answers a ping with a pong of the same content', async () => {
    const { socket, end } = await server.open()
    socket.write(ping('one'))
    await server.until(() => end.frames.length === 1)
    expect(end.frames).toMatchObject([{ opcode: OPCODE.pong, content: Buffer.from('one') }])
  })

  it('sends the reason to a server that violates the protocol, and closes', async () => {
    const { socket, heard, end } = await server.open()
    socket.write(Buffer.concat([text('good'), Buffer.from([0x83, 0]), text('more')]))
    await server.until(() => end.isOver)
    expect(heard).toMatchObject({ texts: ['good'], closed: [[1003, /opcode 3/]] })
    expect(end.frames).toMatchObject([{ opcode: OPCODE.close }])
    expect(end.frames[0]!.content.readUInt16BE(0)).toBe(1003)
  })

  it('treats an error thrown by its owner as an unreadable message', async () => {
    const { socket, heard, end } = await server.open()
    const { texts } = heard
    texts.push = () => {
      throw new Error('too much')
    }
    socket.write(text('any'))
    await server.until(() => heard.closed.length > 0)
    expect(heard.closed).toEqual([[CLOSE.malformed, expect.stringContaining('too much')]])
    await server.until(() => end.isOver)
    expect(end.frames[0]!.content.readUInt16BE(0)).toBe(CLOSE.malformed)
  })

  it('reports that the connection broke', async () => {
    const one = await server.open()
    one.socket.destroy()
    await server.until(() => one.heard.closed.length > 0)
    expect(one.heard.closed).toEqual([[1006, expect.any(String)]])
    const other = await server.open()
    other.socket.resetAndDestroy()
    await server.until(() => other.heard.closed.length > 0)
    expect(other.heard.closed).toEqual([[1006, expect.stringContaining('ECONNRESET')]])
  })
})

describe('a WebSocket that is being closed', () => {
  it('sends one close frame, and ends when the server has sent its own', async () => {
    const { client, socket, heard, end, clock } = await server.open()
    client.close(1000, 'done')
    client.close(1001, 'again')
    await server.until(() => end.frames.length > 0)
    expect(heard.closed).toEqual([])
    expect(clock.keepsRunning).toBe(true)
    socket.write(goodbye(1000, 'you too'))
    await server.until(() => end.isOver)
    expect(heard.closed).toEqual([[1000, 'you too']])
    expect(clock.keepsRunning).toBe(false)
    expect(end.frames).toMatchObject([
      { opcode: OPCODE.close, content: Buffer.from(closing(1000, 'done')) },
    ])
    client.close(1000, 'once more')
    await clock.advance(60_000)
    expect(heard.closed).toHaveLength(1)
  })

  it('does not wait long for a server without a close frame', async () => {
    const { client, heard, end, clock } = await server.open({ silence: 500 })
    client.close(1000, 'done')
    await clock.advance(999)
    expect(heard.closed).toEqual([])
    await clock.advance(1)
    expect(heard.closed).toEqual([[1000, 'done']])
    await server.until(() => end.isOver)
    expect(end.opcodes).toEqual([OPCODE.close])
  })

  it.each([
    [4003, 'too slow', goodbye(4003, 'too slow'), 4003],
    [1001, '', goodbye(1001, ''), 1001],
    // The server gave no code, so this is the only code that may be returned.
    [1005, '', Buffer.from([0x88, 0]), 1000],
  ])('answers the close frame of a server: %i', async (code, reason, bytes, answered) => {
    const { socket, heard, end } = await server.open()
    socket.write(Buffer.concat([bytes, text('late')]))
    socket.write(text('later'))
    await server.until(() => end.isOver)
    expect(heard).toMatchObject({ texts: [], closed: [[code, reason]] })
    expect(end.frames).toMatchObject([
      { opcode: OPCODE.close, content: Buffer.from(closing(answered, '')) },
    ])
  })
})

describe('a silent WebSocket', () => {
  it('sends a ping, and closes if no answer arrives in the same time again', async () => {
    const { heard, end, clock } = await server.open({ silence: 1000 })
    await clock.advance(999)
    await turns()
    expect(end.opcodes).toEqual([])
    await clock.advance(1)
    await server.until(() => end.frames.length > 0)
    expect(end.frames).toMatchObject([{ opcode: OPCODE.ping, content: Buffer.alloc(0) }])
    await clock.advance(999)
    expect(heard.closed).toEqual([])
    await clock.advance(1)
    expect(heard.closed).toEqual([[1006, expect.stringContaining('2000 ms')]])
    expect(clock.keepsRunning).toBe(false)
    await server.until(() => end.isOver)
    expect(end.opcodes).toEqual([OPCODE.ping])
  })

  it('counts from the last message, and a pong is enough', async () => {
    const { heard, end, socket, clock } = await server.open({ silence: 1000 })
    await clock.advance(600)
    socket.write(text('here'))
    await server.until(() => heard.texts.length === 1)
    await clock.advance(999)
    await turns()
    expect(end.opcodes).toEqual([])
    await clock.advance(1)
    await server.until(() => end.frames.length === 1)
    await clock.advance(500)
    socket.write(Buffer.concat([PONG, text('still here')]))
    await server.until(() => heard.texts.length === 2)
    await clock.advance(999)
    await turns()
    expect(end.opcodes).toEqual([OPCODE.ping])
    await clock.advance(1)
    await server.until(() => end.frames.length === 2)
    await clock.advance(1000)
    expect(heard.closed).toHaveLength(1)
  })

  it('waits a fifth of that time for the answer to what it sent, and then sends a ping', async () => {
    const { client, end, heard, clock } = await server.open({ silence: 1000 })
    await clock.advance(900)
    client.send('a question')
    await clock.advance(199)
    await turns()
    expect(end.opcodes).toEqual([OPCODE.text])
    // Another request does not delay it again.
    client.send('another')
    await clock.advance(1)
    await server.until(() => end.frames.length === 3)
    expect(end.opcodes).toEqual([OPCODE.text, OPCODE.text, OPCODE.ping])
    await clock.advance(999)
    expect(heard.closed).toEqual([])
    await clock.advance(1)
    expect(heard.closed).toHaveLength(1)
  })

  it('reads what arrived during a stall of this process before it gives up', async () => {
    const { heard, socket, clock } = await server.open({ silence: 1000 })
    await clock.advance(1000)
    const { defer } = clock
    // Timers run first, then the event loop reads, and then it runs what was deferred.
    clock.defer = (run) => {
      socket.write(text('here'))
      void server.until(() => heard.texts.length === 1).then(() => defer.call(clock, run))
    }
    await clock.advance(1000)
    await server.until(() => heard.texts.length === 1)
    await clock.advance(999)
    expect(heard.closed).toEqual([])
  })

  it('sends a ping at once if it has not sent anything recently', async () => {
    const { client, end, clock } = await server.open({ silence: 1000 })
    await clock.advance(800)
    client.send('a question')
    await clock.advance(200)
    await server.until(() => end.frames.length === 2)
    expect(end.opcodes).toEqual([OPCODE.text, OPCODE.ping])
  })
})
