import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import fc from 'fast-check'
import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { CLOSE, PROTOCOL, remoteStore, STREAM_PATH } from 'leasehold/remote'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { WebSocket } from 'ws'
import { textFrame } from '../../../leasehold/src/stores/remote/frames.ts'
import { createServer, type LeaseServer } from '../../src/index.ts'

const STREAM = { frameBytes: 64 << 10, frameMessages: 100, greeting: 300, buffered: 4 << 20 }

let inner: LeaseStore
let server: LeaseServer
/** A well-behaved client, which must not suffer. */
let other: LeaseStore

beforeAll(async () => {
  inner = memoryStore()
  server = await createServer({ store: inner, port: 0, stream: STREAM })
  other = await remoteStore(server.url)
})

afterAll(async () => {
  await other.close()
  await server.close()
  await inner.close()
})

afterEach(async () => {
  const { holders } = await other.read({ key: 'somebody' })
  expect(holders, 'the others are served').toBe(0)
})

const HELLO = ['hello', PROTOCOL, { client: 'someone' }]

async function connect(headers: Record<string, string> = {}): Promise<WebSocket> {
  const socket = new WebSocket(server.url.replace('http', 'ws') + STREAM_PATH, { headers })
  await once(socket, 'open')
  return socket
}

async function greet(client = 'someone'): Promise<WebSocket> {
  const socket = await connect()
  socket.send(JSON.stringify([['hello', PROTOCOL, { client }]]))
  const [data] = await once(socket, 'message')
  expect(JSON.parse(String(data))[0][0]).toBe('welcome')
  return socket
}

async function closing(socket: WebSocket): Promise<[code: number, reason: string]> {
  const [code, reason] = await once(socket, 'close')
  return [code, String(reason)]
}

/** The next message that the server sends. */
async function next(socket: WebSocket): Promise<unknown[]> {
  const [data] = await once(socket, 'message')
  return JSON.parse(String(data))[0]
}

describe('a client that does not speak the protocol', () => {
  it.each([
    ['no JSON', 'hello', 'a frame is not JSON'],
    ['no array', '{}', 'not an array of messages'],
    ['invalid messages', '[5]', '5 is not a message'],
    ['messages without an id', '[["claim"]]', 'not a message'],
    ['no operation', '[[1]]', 'unknown operation undefined'],
    ['an unknown operation', `[[1,"${'x'.repeat(500)}"]]`, 'unknown operation "xxx'],
    ['too many messages', JSON.stringify(Array(101).fill([1, 'read', {}])), 'the maximum is 100'],
    ['a tie on a stream without tied leases', '[[1,"tie",[]]]', 'not tied'],
  ])('is disconnected for %s, with the reason', async (_name, frame, why) => {
    const socket = await greet()
    socket.send(frame)
    const [code, reason] = await closing(socket)
    expect([code, reason]).toEqual([CLOSE.malformed, expect.stringContaining(why)])
  })

  it('gets a refusal for a tie of something that is not a lease', async () => {
    const socket = await connect()
    socket.send(JSON.stringify([['hello', PROTOCOL, { client: 'tied', tied: 0 }]]))
    await next(socket)
    socket.send('[[1,"tie",["unknown"]]]')
    expect(await next(socket)).toEqual([1, 1])
    socket.send('[[2,"tie",[""]]]')
    const refusal = [2, 0, 'invalid-argument', expect.stringContaining('lease is ""')]
    expect(await next(socket)).toEqual(refusal)
    socket.terminate()
  })

  it('is disconnected for binary frames, and for a frame that is too large', async () => {
    const one = await greet()
    one.send(Buffer.from('[]'))
    expect((await closing(one))[0]).toBe(CLOSE.malformed)
    const two = await greet()
    two.send(`[${' '.repeat(STREAM.frameBytes)}]`)
    expect((await closing(two))[0]).toBe(CLOSE.tooLarge)
  })

  it.each([
    ['another version', ['hello', 99, { client: 'x' }], CLOSE.version, 'version 1'],
    ['something else first', [1, 'read', { key: 'k' }], CLOSE.malformed, 'must be hello'],
    ['no name', ['hello', 1], CLOSE.malformed, 'client is undefined'],
    ['a name that is too long', ['hello', 1, { client: 'x'.repeat(129) }], CLOSE.malformed, '128'],
    ['an invalid tie', ['hello', 1, { client: 'x', tied: -1 }], CLOSE.malformed, 'tied is -1'],
  ])('is refused with a hello that says %s', async (_name, hello, code, why) => {
    const socket = await connect()
    const heard: unknown[] = []
    socket.on('message', (data) => heard.push(...JSON.parse(String(data))))
    socket.send(JSON.stringify([hello]))
    expect(await closing(socket)).toEqual([code, expect.stringContaining(why)])
    if (code === CLOSE.version) {
      expect(heard).toEqual([['refused', 'unsupported', expect.stringContaining('not 99')]])
    }
  })

  it('is disconnected if it sends nothing', async () => {
    expect(await closing(await connect())).toEqual([CLOSE.malformed, 'no hello was received'])
  })

  it('is refused from a page of another origin, and at another place', async () => {
    const expectStatus = async (path: string, origin: string, status: number) => {
      const socket = new WebSocket(server.url.replace('http', 'ws') + path, { origin })
      socket.on('error', () => {})
      const [, response] = await once(socket, 'unexpected-response')
      expect(response.statusCode).toBe(status)
      socket.terminate()
    }
    await expectStatus(STREAM_PATH, 'http://evil.example', 403)
    await expectStatus('/elsewhere', server.url, 404)
  })

  it('never crashes the server, for any input', async () => {
    const message = fc.tuple(
      fc.oneof(fc.nat(9), fc.jsonValue()),
      fc.oneof(
        fc.constantFrom('grant', 'renew', 'revoke', 'claim', 'release', 'update', 'read', 'watch'),
        fc.jsonValue(),
      ),
      fc.jsonValue(),
      fc.jsonValue(),
      fc.jsonValue(),
    )
    const frame = fc.oneof(
      fc.array(message).map((it) => JSON.stringify(it)),
      fc.string(),
    )
    const play = async (text: string) => {
      const socket = await connect()
      socket.send(JSON.stringify([HELLO]))
      socket.send(text)
      socket.send(JSON.stringify([[77, 'read', { key: 'k' }]]))
      await new Promise<void>((resolve) => {
        socket.on('close', () => resolve())
        socket.on('message', (data) => String(data).includes('[77,') && resolve())
      })
      socket.terminate()
    }
    // A disconnected client has a second to read the reason, so many are disconnected at a time.
    const frames = fc.array(frame, { minLength: 20, maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(frames, (texts) => Promise.all(texts.map(play)).then(() => {})),
      { numRuns: 10 },
    )
    expect((await other.read({ key: 'k' })).revision).toBeGreaterThanOrEqual(0)
  })
})

describe('values that are wrong', () => {
  it('are refused by the store, in an answer', async () => {
    const socket = await greet()
    for (const [request, code] of [
      [[1, 'grant', null], 'invalid-argument'],
      [[2, 'grant', { holder: 'a', ttl: 'x' }], 'invalid-argument'],
      [[3, 'claim', 5, ['k'], 0], 'invalid-argument'],
      [[4, 'claim', 'no-such-lease', [null], 0], 'invalid-argument'],
      [[5, 'release', 'no-such-lease', 7, ['k']], 'lease-not-found'],
      [[6, 'read', { key: '' }], 'invalid-argument'],
      [[7, 'revoke', {}], 'invalid-argument'],
      [[8, 'renew', 'all'], 'invalid-argument'],
    ] as const) {
      socket.send(JSON.stringify([request]))
      expect(await next(socket)).toMatchObject([request[0], 0, code, expect.any(String)])
    }
    socket.send(JSON.stringify([[10, 'watch', { from: 1 }]]))
    expect(await next(socket)).toMatchObject(['notice', 10, { type: 'interrupted' }])
    socket.terminate()
  })
})

describe('a client that does not read', () => {
  const value = 'v'.repeat(16 << 10)

  it('is disconnected when too many of its events wait for it, with the reason', async () => {
    const before = server.stats.dropped
    const slow = await greet('slow')
    const closed = closing(slow)
    slow.send(JSON.stringify([[1, 'watch', { prefix: 'big/' }]]))
    expect(await next(slow)).toMatchObject(['notice', 1, { type: 'watching' }])
    slow.pause()
    const granted = await other.grant({ holder: 'a', ttl: 60_000 })
    if (granted.outcome !== 'granted') throw new Error('not granted')
    const { lease } = granted
    const held = await other.claim({ lease, claims: [{ key: 'big/1', value }] })
    if (held.outcome !== 'claimed') throw new Error('not claimed')
    for (let round = 0; server.stats.dropped === before; round++) {
      expect(round, 'it was not dropped').toBeLessThan(5000)
      await other.update({ lease, key: 'big/1', token: held.token, value })
    }
    slow.resume()
    // If it reads soon enough it learns the reason; otherwise it only finds the stream broken.
    const [code, reason] = await closed
    expect([CLOSE.slow, 1006]).toContain(code)
    if (code === CLOSE.slow) expect(reason).toMatch(/bytes are unread/)
  })

  it('is not read while its answers pile up, and is answered when it reads again', async () => {
    const greedy = await greet('greedy')
    const granted = await other.grant({
      holder: 'a',
      ttl: 60_000,
      claims: [{ key: 'greedy', value }],
    })
    expect(granted.outcome).toBe('granted')
    greedy.pause()
    const before = server.stats.requests
    for (let id = 1; id <= 3000; id++) {
      greedy.send(JSON.stringify([[id, 'read', { key: 'greedy' }]]))
    }
    await vi.waitFor(() => expect(server.stats.requests - before).toBeGreaterThan(50))
    let seen = 0
    await vi.waitFor(
      () => {
        const now = server.stats.requests
        const still = now === seen
        seen = now
        expect(still, 'it reads on').toBe(true)
      },
      { interval: 200, timeout: 5000 },
    )
    expect(seen - before).toBeLessThan(3000)
    expect((await other.read({ key: 'somebody' })).count).toBe(0)
    let answers = 0
    const all = new Promise<void>((resolve) => {
      greedy.on('message', (data) => {
        answers += JSON.parse(String(data)).length
        if (answers === 3000) resolve()
      })
    })
    greedy.resume()
    await all
    greedy.terminate()
  })
})

describe('a silent client', () => {
  it('is disconnected; one that answers pings is not', async () => {
    const quick = await createServer({ store: inner, port: 0, stream: { silence: 1500 } })
    const open = async (options: object) => {
      const socket = new WebSocket(quick.url.replace('http', 'ws') + STREAM_PATH, options)
      await once(socket, 'open')
      socket.send(JSON.stringify([['hello', PROTOCOL, { client: String(options) }]]))
      return socket
    }
    const dead = await open({ autoPong: false })
    expect((await closing(dead))[0]).toBe(CLOSE.silent)
    const alive = await open({ autoPong: true })
    let pings = 0
    await new Promise<void>((resolve, reject) => {
      alive.on('close', (code) => reject(new Error(`closed with ${code} after ${pings} pings`)))
      alive.on('ping', () => {
        if (++pings === 4) resolve()
      })
    })
    expect(alive.readyState).toBe(WebSocket.OPEN)
    await quick.close()
  })
})

describe('connections that are half open', () => {
  const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='

  async function raw(): Promise<Socket> {
    const { port, hostname } = new URL(server.url)
    const socket = connectTcp({ port: Number(port), host: hostname, allowHalfOpen: true })
    await once(socket, 'connect')
    return socket
  }

  /** A client that has said hello, with tied leases. */
  async function greeted(client: string): Promise<Socket> {
    const socket = await raw()
    socket.write(
      `GET ${STREAM_PATH} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
        `sec-websocket-version: 13\r\nsec-websocket-key: ${KEY}\r\n\r\n`,
    )
    await once(socket, 'data')
    const hello = JSON.stringify([['hello', PROTOCOL, { client, tied: 0 }]])
    socket.write(textFrame(hello, 1))
    await once(socket, 'data')
    return socket
  }

  it('that are half closed are closed, and free their tied leases', async () => {
    const socket = await greeted('half')
    const grant = { holder: 'half', ttl: 600_000, claims: [{ key: 'half' }] }
    socket.write(textFrame(JSON.stringify([[1, 'grant', grant]]), 1))
    await once(socket, 'data')
    expect((await other.read({ key: 'half' })).count).toBe(1)
    const ended = once(socket, 'end')
    socket.end()
    socket.resume()
    await ended
    const free = async () => expect((await other.read({ key: 'half' })).count).toBe(0)
    await vi.waitFor(free, { timeout: 30_000 })
  })

  it('that send nothing, or half a request, do not block other clients', async () => {
    const sockets = await Promise.all(Array.from({ length: 200 }, raw))
    for (const [number, socket] of sockets.entries()) {
      socket.on('error', () => {})
      if (number % 2 === 0) socket.write(`GET ${STREAM_PATH} HTTP/1.1\r\nhost:`)
    }
    const half = await greeted('in the midst of a frame')
    half.on('error', () => {})
    half.write(textFrame(JSON.stringify([[1, 'read', { key: 'k' }]]), 1).subarray(0, 9))
    const newcomer = await remoteStore(server.url)
    expect((await newcomer.read({ key: 'somebody' })).count).toBe(0)
    await newcomer.close()
    for (const socket of [...sockets, half]) socket.destroy()
  })
})
