import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { DONE, PROTOCOL, STREAM_PATH } from 'leasehold/remote'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import type { StreamOptions } from '../../src/stream/options.ts'
import { helloFrom } from './raw-stream.ts'
import { KEY, scene } from './scene.ts'

describe('a request for a stream', () => {
  const asking = async (
    given: Partial<IncomingMessage>,
    options: Partial<StreamOptions> = {},
    prepare: (made: Awaited<ReturnType<typeof scene>>) => Promise<unknown> = async () => {},
  ) => {
    const made = await scene(options)
    await prepare(made)
    const socket = new PassThrough()
    const closed = new Promise((resolve) => socket.once('close', resolve))
    const request = { method: 'GET', headers: {}, socket: {}, ...given }
    made.server.upgrade(request as IncomingMessage, socket, Buffer.alloc(0))
    const said = String(socket.read())
    await closed
    return said
  }

  it.each([
    [{}, '404 Not Found'],
    [{ url: '/v1/other' }, '404 Not Found'],
    [{ url: '/v1/streams' }, '404 Not Found'],
    [{ url: '/v1/stream', headers: { origin: 'http://evil.example' } }, '403 Forbidden'],
    [
      {
        url: '/v1/stream?x=1',
        headers: { host: 'evil.example' },
        socket: { localAddress: '::1' } as never,
      },
      '403 Forbidden',
    ],
  ])('is turned away: %j', async (request, status) => {
    expect(await asking(request)).toContain(`HTTP/1.1 ${status}\r\n`)
  })

  it('is released when its socket fails', async () => {
    const { server } = await scene()
    const socket = new PassThrough()
    const request = { url: '/v1/other', headers: {}, socket: {} } as IncomingMessage
    server.upgrade(request, socket, Buffer.alloc(0))
    socket.emit('error', new Error('reset'))
    expect(socket.destroyed).toBe(true)
  })

  it('is refused at the maximum number of streams, or while the server stops', async () => {
    const url = '/v1/stream'
    const full = await asking({ url }, { connections: 1 }, ({ greeted }) => greeted('c'))
    expect(full).toContain('503 Service Unavailable')
    const stopping = await asking({ url }, {}, async ({ server }) => void server.close())
    expect(stopping).toContain('503 Service Unavailable')
  })

  it('without a token is refused, with the reason in a valid header', async () => {
    const headers = { authorization: 'Bearer "ä"' }
    const said = await asking({ url: '/v1/stream', headers }, {}, ({ as }) => as('ann'))
    expect(said).toMatch(
      /401 Unauthorized\r\nwww-authenticate: Bearer error_description="[ !#-~]+"/,
    )
    const form = { authorization: 'Basic' }
    const why = await asking({ url: '/v1/stream', headers: form }, {}, ({ as }) => as('ann'))
    expect(why).toContain("'Bearer lh_?'")
  })
})

describe('a stream over a connection', () => {
  /** A client of the server, over a socket of the operating system. */
  async function connected() {
    const { server, access } = await scene()
    let left = 0
    const admit = access.admit.bind(access)
    access.admit = (credentials) => {
      const admission = admit(credentials)
      const { leave } = admission
      return Object.assign(admission, {
        leave: () => {
          left++
          leave()
        },
      })
    }
    const listener = createServer()
    listener.on('upgrade', (...upgrade) => server.upgrade(...upgrade))
    await once(listener.listen(0, '127.0.0.1'), 'listening')
    const { port } = listener.address() as AddressInfo
    const client = new WebSocket(`ws://127.0.0.1:${port}${STREAM_PATH}`)
    await once(client, 'open')
    const close = () => listener.close()
    return { client, server, close, left: () => left }
  }

  const heard = async (client: WebSocket) => JSON.parse(String((await once(client, 'message'))[0]))

  it('is served, not compressed, and each ping is answered once', async () => {
    const { client, close, left } = await connected()
    expect(client.extensions).toBe('')
    const pongs: string[] = []
    client.on('pong', (data) => pongs.push(String(data)))
    client.ping('1')
    client.send(helloFrom('c'))
    expect(await heard(client)).toMatchObject([['welcome', PROTOCOL, {}]])
    client.send(JSON.stringify([[1, 'read', KEY]]))
    expect(await heard(client)).toMatchObject([[1, DONE, { count: 0 }]])
    expect([pongs, left()]).toEqual([['1'], 0])
    client.terminate()
    await once(client, 'close')
    close()
  })

  it('leaves when its connection is closed', async () => {
    const { client, server, close, left } = await connected()
    client.terminate()
    while (server.stats.connections > 0) await new Promise((resolve) => setImmediate(resolve))
    expect(left()).toBe(1)
    close()
  })
})
