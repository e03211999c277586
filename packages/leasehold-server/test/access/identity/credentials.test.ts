import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Duplex, PassThrough } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { BrowserSessions, SESSION_MS } from '../../../src/access/identity/browser-sessions.ts'
import { cookieName, credentialsOf, isForeign, refuseUpgrade } from '../../../src/access/index.ts'

const LOCAL = { localAddress: '127.0.0.1', localPort: 7420, remoteAddress: '192.0.2.9' }

function shown(headers: IncomingHttpHeaders, socket: object = LOCAL) {
  return credentialsOf({ headers, socket } as IncomingMessage)
}

function tlsSocket(authorized: boolean, certificate: object) {
  const socket = new TLSSocket(new PassThrough() as never)
  return Object.assign(socket, { authorized, getPeerCertificate: () => certificate })
}

describe('the credentials of a request', () => {
  it('is its token and its address', () => {
    expect(shown({ authorization: 'Bearer x', host: 'localhost' })).toEqual({
      authorization: 'Bearer x',
      address: '192.0.2.9',
      misnamed: undefined,
      session: undefined,
    })
  })

  it('is the token among the subprotocols of a page, unless there is a header', () => {
    const offered = { 'sec-websocket-protocol': 'leasehold, leasehold.access-token.lh_x' }
    expect(shown(offered).authorization).toBe('Bearer lh_x')
    expect(shown({ ...offered, authorization: 'Bearer y' }).authorization).toBe('Bearer y')
    expect(shown({ 'sec-websocket-protocol': 'leasehold' }).authorization).toBeUndefined()
  })

  it.each([
    ['localhost', undefined],
    ['LocalHost:7420', undefined],
    ['127.0.0.1:80', undefined],
    ['[::1]', undefined],
    ['[::1]:65535', undefined],
    [undefined, undefined],
    ['evil.example:7420', 'evil.example'],
    ['localhost.evil.example', 'localhost.evil.example'],
    ['evil.example:7420.', 'evil.example:7420.'],
    ['x[::1]', 'x[::1]'],
    ['[::1]x', '[::1]x'],
    ['12[7.0.0.1]', '12[7.0.0.1]'],
    ['[127.0.0].1', '[127.0.0].1'],
    ['', ''],
  ])('is a strange name of a loopback server: %j', (host, misnamed) => {
    expect(shown({ host }).misnamed).toBe(misnamed)
  })

  it.each([
    ['127.0.0.1', true],
    ['127.9.9.9', true],
    ['::ffff:127.0.0.1', true],
    ['::1', true],
    ['::1:2', false],
    ['2001:db8::1', false],
    ['192.0.2.127', false],
    ['1270.0.0.1', false],
    ['10.127.0.1', false],
    [undefined, false],
  ])('is a strange name only if the server is at a loopback address: %j', (localAddress, asked) => {
    const { misnamed } = shown({ host: 'evil.example' }, { ...LOCAL, localAddress })
    expect(misnamed).toBe(asked ? 'evil.example' : undefined)
  })

  it('is the session in the cookie of this port, among others', () => {
    const host = 'localhost:7420'
    expect(shown({ host, cookie: 'a=b; leasehold-7420=mine; c=d' }).session).toBe('mine')
    expect(shown({ host, cookie: 'a=b;  __Host-leasehold-7420=safe' }).session).toBe('safe')
    expect(shown({ host, cookie: 'a=b;leasehold-7420=close' }).session).toBe('close')
    expect(shown({ host, cookie: 'leasehold-7421=other' }).session).toBeUndefined()
    expect(shown({ host, cookie: 'x-leasehold-7420=other' }).session).toBeUndefined()
    expect(shown({ host }).session).toBeUndefined()
    const unbound = { ...LOCAL, localPort: undefined }
    expect(shown({ host, cookie: 'leasehold-0=none' }, unbound).session).toBe('none')
  })

  it("do not include a session if another server's page sends it", () => {
    const cookie = 'leasehold-7420=mine'
    const ask = (origin: string) => shown({ host: 'localhost:7420', origin, cookie }).session
    expect(ask('http://localhost:7420')).toBe('mine')
    expect(ask('http://localhost:7421')).toBeUndefined()
    expect(ask('null')).toBeUndefined()
    expect(isForeign({ host: 'localhost' })).toBe(false)
  })

  it('is the name in a certificate, if that was verified', () => {
    const certificate = { subject: { CN: 'ann.example' } }
    expect(shown({}, tlsSocket(true, certificate))).toMatchObject({ certificate: 'ann.example' })
    expect(shown({}, tlsSocket(true, {}))).toMatchObject({ certificate: undefined })
    expect(shown({}, tlsSocket(false, certificate))).not.toHaveProperty('certificate')
    expect(shown({}, { ...LOCAL, authorized: true })).not.toHaveProperty('certificate')
  })
})

describe('the cookie of a session', () => {
  it('names the port, and is bound to the host if the connection is secure', () => {
    expect(cookieName(7420, false)).toBe('leasehold-7420')
    expect(cookieName(7420, true)).toBe('__Host-leasehold-7420')
    expect(cookieName(undefined, false)).toBe('leasehold-0')
  })
})

describe('the session of a browser', () => {
  const sessions = new BrowserSessions(Buffer.alloc(32, 1))
  const HASH = 'hash of the token'

  it('lasts for twelve hours, and is valid for one token', () => {
    expect(SESSION_MS).toBe(43_200_000)
    const text = sessions.begin('ann', HASH, 1000.5)
    expect(text).toMatch(/^ann\.43201000\.[A-Za-z0-9_-]{43}$/)
    const opened = sessions.open(text, 1000 + SESSION_MS - 1)
    expect(opened?.name).toBe('ann')
    expect(opened?.isOf(HASH)).toBe(true)
    expect(opened?.isOf('hash of another')).toBe(false)
    expect(sessions.open(text, 1000 + SESSION_MS)).toBeUndefined()
  })

  it('cannot be changed, nor made with another key or with the key itself', () => {
    const text = sessions.begin('ann', HASH, 0)
    const later = text.replace('.43200000.', '.53200000.')
    const renamed = text.replace('ann', 'bob')
    for (const changed of [later, renamed]) {
      expect(sessions.open(changed, 0)?.isOf(HASH)).toBe(false)
    }
    const other = new BrowserSessions(Buffer.alloc(32, 2)).begin('ann', HASH, 0)
    expect(sessions.open(other, 0)?.isOf(HASH)).toBe(false)
  })

  it.each([
    'x',
    '.1.',
    `an n.9.${'A'.repeat(43)}`,
    `ann.9x.${'A'.repeat(43)}`,
    `ann.9.${'A'.repeat(42)}`,
    `ann.9.${'A'.repeat(44)}`,
    ` ann.9.${'A'.repeat(43)}`,
    `ann.9.${'A'.repeat(43)} `,
    `ann.9.${'!'.repeat(43)}`,
    `${'a'.repeat(65)}.9.${'A'.repeat(43)}`,
    `ann.${'9'.repeat(16)}.${'A'.repeat(43)}`,
  ])('is missing in another form: %j', (text) => {
    expect(sessions.open(text, 0)).toBeUndefined()
  })

  it('is read in its form', () => {
    expect(sessions.open(`a-1.9.${'A'.repeat(43)}`, 0)?.name).toBe('a-1')
    expect(sessions.open(`${'a'.repeat(64)}.10.${'_'.repeat(43)}`, 9)?.name).toHaveLength(64)
    expect(sessions.open(`a.${'9'.repeat(15)}.${'-'.repeat(43)}`, 9)?.name).toBe('a')
  })
})

describe('a connection that is not let in', () => {
  it('is answered with the status, and then destroyed although its peer stays', async () => {
    const written: string[] = []
    const socket = new Duplex({
      allowHalfOpen: true,
      read: () => {},
      write: (chunk, _encoding, done) => {
        written.push(String(chunk))
        done()
      },
    })
    const closed = new Promise((resolve) => socket.once('close', resolve))
    refuseUpgrade(socket, '401 Unauthorized')
    await closed
    expect(socket.destroyed).toBe(true)
    expect(written.join('')).toBe(
      'HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 0\r\n\r\n',
    )
  })
})
