import { readFileSync } from 'node:fs'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { memoryStore } from 'leasehold/memory'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseRight } from '../../src/access/index.ts'
import { createServer, type LeaseServer } from '../../src/index.ts'

const pem = (name: string) => readFileSync(new URL(`../certificates/${name}`, import.meta.url))
const own = { cert: pem('server.pem'), key: pem('server.key') }
const client = (name: string) => ({ cert: pem(`${name}.pem`), key: pem(`${name}.key`) })

/** Sends a request on one connection. Returns the answer and the session to resume later. */
function ask(
  server: LeaseServer,
  options: ConnectionOptions,
  header = '',
): Promise<{ answer: string; session: Buffer | undefined; isResumed: boolean }> {
  const { port } = new URL(server.url)
  return new Promise((resolve) => {
    let answer = ''
    let session: Buffer | undefined
    let isResumed = false
    const socket: TLSSocket = connect({
      ...{ host: '127.0.0.1', port: Number(port), ca: pem('ca.pem') },
      ...options,
    })
    socket.on('secureConnect', () => {
      isResumed = socket.isSessionReused()
    })
    socket.on('session', (given) => {
      session = given
    })
    socket.on('data', (data) => {
      answer += data
    })
    socket.on('error', (error) => {
      answer += error.message
    })
    socket.on('close', () => resolve({ answer, session, isResumed }))
    socket.end(
      `GET /v1/keys/jobs/1 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${header}\r\n`,
    )
  })
}

describe('mutual TLS', () => {
  const store = memoryStore()
  let server: LeaseServer
  let token: string
  beforeAll(async () => {
    const ca = Buffer.concat([pem('ca.pem'), pem('two-names.pem')])
    server = await createServer({ store, port: 0, tls: { ...own, ca } })
    const rights = [parseRight('read:')]
    for (const name of ['worker', 'admin']) {
      token = await server.access.tokens.create({ name, rights, certificate: name })
    }
  })
  afterAll(async () => {
    await server.close()
    await store.close()
  })

  it('refuses a certificate with two common names, and says so', async () => {
    const { answer } = await ask(server, client('two-names'))
    expect(answer).toMatch(/^HTTP\/1\.1 401 /)
    expect(answer).toContain('has 2 common names')
    const shown = await ask(server, client('two-names'), `authorization: Bearer ${token}\r\n`)
    expect(shown.answer).toMatch(/^HTTP\/1\.1 200 /)
  })

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'refuses a resumed session of %s from before the authorities were changed',
    async (version) => {
      const ca = pem('ca.pem')
      server.renewTls({ ...own, ca })
      const options = { ...client('worker'), maxVersion: version, minVersion: version }
      const first = await ask(server, options)
      expect(first.answer).toMatch(/^HTTP\/1\.1 200 /)
      const again = await ask(server, { ...options, session: first.session })
      expect([again.answer.slice(0, 12), again.isResumed]).toEqual(['HTTP/1.1 200', true])
      server.renewTls({ ...own, ca: pem('two-names.pem') })
      const after = await ask(server, { ...options, session: first.session })
      expect(after.answer).not.toMatch(/^HTTP\/1\.1 200/)
    },
  )
})
