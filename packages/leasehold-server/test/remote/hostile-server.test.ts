import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { DEFAULT_LIMITS, type LeaseStore, type Notice } from 'leasehold/port'
import { PROTOCOL, remoteStore } from 'leasehold/remote'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { DEFAULT_STREAM } from '../../src/index.ts'

/**
 * A broken or malicious server. Whatever it sends, the process of its client must continue, and
 * every call must end. An unhandled error fails the whole run of these tests.
 */
let server: WebSocketServer
let url = ''
/** The server's answer to a request, as sent. */
let respond: (id: number, socket: WebSocket) => void = () => {}
let welcome: unknown

const WELCOME = {
  server: 'hostile',
  guarantees: { ttl: { min: 10, max: null, step: 0 }, notes: [] },
  limits: DEFAULT_LIMITS,
  stream: DEFAULT_STREAM,
}

beforeEach(async () => {
  welcome = ['welcome', PROTOCOL, WELCOME]
  respond = () => {}
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  server.on('connection', (socket) => {
    socket.once('message', () => {
      socket.send(JSON.stringify([welcome]))
      socket.on('message', (data) => {
        for (const [id] of JSON.parse(String(data))) respond(id, socket)
      })
    })
  })
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterEach(async () => {
  for (const socket of server.clients) socket.terminate()
  await new Promise((resolve) => server.close(resolve))
})

const open = (): Promise<LeaseStore> => remoteStore(url, { timeout: 300 })

const CALLS: readonly (readonly [name: string, call: (store: LeaseStore) => Promise<unknown>])[] = [
  ['grant', (store) => store.grant({ holder: 'a', ttl: 1000, request: 'once' })],
  ['claim', (store) => store.claim({ lease: '1.1', claims: [{ key: 'k' }], request: 'once' })],
  ['renew', (store) => store.renew(['1.1'])],
  ['read', (store) => store.read({ lease: '1.1' })],
]

describe('a server that sends invalid messages', () => {
  it.each([
    ['no JSON', () => 'hello'],
    ['no array', () => '{}'],
    ['null', () => 'null'],
    ['invalid messages', () => '[null,5,"x"]'],
    ['empty messages', () => '[[]]'],
    ['an answer of nothing', (id: number) => `[[${id},1]]`],
    ['an answer of null', (id: number) => `[[${id},1,null]]`],
    ['an answer that is a string', (id: number) => `[[${id},1,"x"]]`],
    ['an answer without what is before it', (id: number) => `[[${id},1,{"outcome":"claimed"}]]`],
    ['a lease without an id', (id: number) => `[[${id},1,{"outcome":"granted","ahead":[]}]]`],
    ['invalid losses', (id: number) => `[[${id},1,{"lost":5,"capped":5}]]`],
    ['invalid claims', (id: number) => `[[${id},1,{"claims":5,"keys":5,"leases":5}]]`],
    ['an error of nothing', (id: number) => `[[${id},0]]`],
    ['an error that is an object', (id: number) => `[[${id},0,{"toString":1},{"toString":1}]]`],
    ['that it was not carried out, twice', (id: number) => `[[${id},2],[${id},2]]`],
    ['notices of nothing', (id: number) => `[["notice",${id}],["notice"],["notice",{},{}]]`],
    ['a second welcome', () => '[["welcome"],["refused"],["bye"]]'],
    ['brackets', () => '['.repeat(100_000)],
  ])('%s does its client no harm', async (_name, frame) => {
    const store = await open()
    respond = (id, socket) => socket.send(frame(id))
    const heard: Notice[] = []
    store.watch({ prefix: '' }, (notice) => heard.push(notice))
    const outcomes = await Promise.allSettled(CALLS.map(([, call]) => call(store)))
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') continue
      expect(outcome.reason).toMatchObject({ name: 'LeaseholdError', code: 'unknown-outcome' })
    }
    await store.close()
  })

  it.each([
    ['no welcome', ['hello']],
    ['an empty welcome', ['welcome', PROTOCOL]],
    ['a welcome of null', ['welcome', PROTOCOL, null]],
    ['a welcome without limits', ['welcome', PROTOCOL, { ...WELCOME, stream: {} }]],
    ['a welcome without guarantees', ['welcome', PROTOCOL, { ...WELCOME, guarantees: {} }]],
    ['nothing', null],
  ])('and greets with %s is not taken for one', async (_name, first) => {
    welcome = first
    await expect(open()).rejects.toMatchObject({ code: 'timeout' })
  })

  it.each([
    ['a string that is too long', Buffer.from([0x81, 127, 0, 0, 0, 0, 0x7f, 0, 0, 0])],
    ['a binary frame', Buffer.from([0x82, 1, 65])],
    ['fragments without end', Buffer.from([0x01, 0, ...Array(40_000).fill(0)])],
    ['a close with half a code', Buffer.from([0x88, 1, 65])],
  ])('and frames like %s does its client no harm', async (_name, bytes) => {
    const store = await open()
    respond = (_id, socket) => {
      const raw = (socket as unknown as { readonly _socket: Socket })._socket
      raw.write(bytes)
    }
    await expect(store.read({ key: 'k' })).rejects.toMatchObject({ code: 'unknown-outcome' })
    await store.close()
  })
})
