import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { entryAt, openConsul, put } from './open-consul.ts'

describe('requests to the Consul API', () => {
  let scene: Awaited<ReturnType<typeof openConsul>>

  beforeEach(async () => {
    scene = await openConsul()
  })
  afterEach(() => scene.gateway.close())

  /** Sends bytes as they are, which `fetch` would not. */
  const send = async (text: string): Promise<string> => {
    const socket = connect(scene.gateway.port, '127.0.0.1').setEncoding('utf8')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.write(text)
    await once(socket, 'close')
    return answer
  }
  const request = (line: string) =>
    send(`${line} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)

  it('that are too large get 413, and the connection is closed', async () => {
    const response = await fetch(`${scene.url}/kv/a`, { method: 'PUT', body: 'x'.repeat(1 << 20) })
    expect([response.status, await response.text()]).toEqual([
      413,
      expect.stringContaining('too large'),
    ])
    expect(await put(scene.url, 'kv/a', 'x'.repeat(100_000))).toMatch(/value/)
    expect(await entryAt(scene.url, 'a')).toBeUndefined()
  })

  it('may come on a connection that was idle for as long as clients keep it', async () => {
    const response = await fetch(`${scene.url}/status/leader`)
    // The transport of Go keeps idle connections for 90 s.
    expect(Number(/timeout=(\d+)/.exec(response.headers.get('keep-alive')!)![1])).toBeGreaterThan(
      90,
    )
  })

  it('delete nothing if their flags contradict each other', async () => {
    const { url } = scene
    await put(url, 'kv/a/b', 'x')
    const response = await fetch(`${url}/kv/a?recurse&cas=1`, { method: 'DELETE' })
    expect([response.status, await response.text()]).toEqual([
      400,
      'Conflicting flags: cas=1&recurse=',
    ])
    expect(await entryAt(url, 'a/b')).toBeDefined()
  })

  it('name keys exactly, also with dots', async () => {
    expect(await request('PUT /v1/kv/a/../b')).toContain('true')
    expect(await request('PUT http://127.0.0.1/v1/kv/c//d')).toContain('true')
    const keys = (await (await fetch(`${scene.url}/kv/?keys`)).json()) as string[]
    expect(keys).toEqual(['a/../b', 'c//d'])
  })

  it.each([
    ['PUT', 'session/create', 'null', 200],
    ['PUT', 'session/create', '[]', 400],
    ['PUT', 'session/create', '7', 400],
    ['PUT', 'session/create', '{"LockDelay":[]}', 400],
    ['PUT', 'session/create', '{"TTL":"1e9s"}', 500],
    ['PUT', 'agent/service/register', 'null', 400],
    ['PUT', 'agent/service/register', '{"Name":"a","Tags":[{}]}', 400],
    ['PUT', 'agent/service/register', '{"Name":"a","Meta":{"a":{}}}', 400],
    ['PUT', 'agent/service/register', '{"Name":"a","Weights":{"Passing":"x"}}', 400],
    ['PUT', 'agent/service/register', '{"Name":"a","TaggedAddresses":{"lan":null}}', 400],
    ['PUT', 'agent/service/register', '{"Name":"a","Checks":[null]}', 400],
    ['PUT', 'kv/a?flags=18446744073709551616000', 'x', 500],
    ['PUT', 'kv/a?cas=', 'x', 500],
    ['GET', 'kv/%E0%A4%A', undefined, 400],
    ['GET', `kv/${'k'.repeat(2000)}`, undefined, 400],
    ['GET', 'session/info/a%00b', undefined, 400],
    ['GET', 'health/service/__proto__', undefined, 200],
    ['GET', '__proto__/x', undefined, 501],
  ])('%s %s with %s gets an answer: %i', async (method, path, body, status) => {
    const response = await fetch(`${scene.url}/${path}`, { method, ...(body && { body }) })
    expect([response.status, await response.text()]).toEqual([
      status,
      expect.not.stringContaining('Cannot read'),
    ])
    expect(await put(scene.url, 'kv/alive', 'yes')).toBe('true')
  })

  it('do not fail because of keys that something else has claimed', async () => {
    const { store, url } = scene
    for (const [at, key] of ['kv/foreign', 'session/foreign', 'ttl/foreign'].entries()) {
      for (const value of ['null', 'no header', '{"s":"nobody"}\n', undefined]) {
        const claims = [{ key: `consul/${key}/${at}/${value?.length}`, value }]
        const granted = await store.grant({ holder: 'other', ttl: 60_000, claims })
        if (granted.outcome === 'granted') await store.revoke({ target: { lease: granted.lease } })
        await store.grant({ holder: 'other', ttl: 60_000, claims })
      }
    }
    await put(url, 'kv/own', 'x')
    for (const path of ['kv/?recurse', 'kv/?keys', 'session/list', 'agent/services']) {
      expect((await fetch(`${url}/${path}`)).status).toBe(200)
    }
    expect(await entryAt(url, 'own')).toMatchObject({ Value: btoa('x') })
  })
})
