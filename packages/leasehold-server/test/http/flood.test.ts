import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { Scene } from './scene.ts'

describe('ten thousand requests without a token', () => {
  it('are all refused, reveal nothing, and do not block other clients', async () => {
    const own = await Scene.open()
    const token = await own.token('ada', 'all:')
    const headers = { authorization: `Bearer ${token}` }
    await own.ask('POST /v1/locks/secret-key?value=secret-value', undefined, headers)
    const before = own.server.httpStats.requests
    const paths = [
      'GET /v1/keys/secret-key',
      'POST /v1/locks/secret-key',
      'DELETE /v1/keys/secret-key',
      'GET /v1/leases',
      'GET /v1/events',
      'GET /v1/nothing',
      'PUT /v1/pools/x',
    ]
    const wrong = ['', 'Bearer', 'Bearer x', 'Basic eDp4', `Bearer ${token}x`, `bearer lh_ada_x`]
    const { hostname, port } = new URL(own.server.url)
    let answers = ''
    let served = 0
    for (let round = 0; round < 100; round++) {
      const socket = connect(Number(port), hostname)
      for (let at = 0; at < 100; at++) {
        const token = wrong[at % wrong.length]!
        const shown = token === '' ? '' : `authorization: ${token}\r\n`
        const last = at === 99 ? 'connection: close\r\n' : ''
        const [method, path] = paths[(round + at) % paths.length]!.split(' ')
        const length = method === 'GET' ? '' : 'content-length: 0\r\n'
        socket.write(
          `${method} ${path} HTTP/1.1\r\nhost: localhost\r\n${length}${shown}${last}\r\n`,
        )
      }
      const health = own.ask('GET /healthz')
      for await (const chunk of socket) answers += chunk
      if ((await health).status === 200) served++
    }
    const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1])
    expect([statuses.length, new Set(statuses)]).toEqual([10_000, new Set(['401'])])
    expect(answers.match(/^www-authenticate: Bearer\r$/gm)).toHaveLength(10_000)
    expect(answers).not.toContain('secret')
    expect(served).toBe(100)
    expect(own.server.httpStats.requests).toBe(before)
    expect((await own.ask('GET /v1/keys/secret-key', undefined, headers)).body.count).toBe(1)
    await own.close()
  }, 120_000)
})
