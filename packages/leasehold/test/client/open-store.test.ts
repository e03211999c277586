import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { settingsOf } from '../../src/client/settings.ts'
import { openEngine } from '../../src/engines/index.ts'
import { openStore } from '../../src/open/index.ts'
import { TestClock } from '../../src/testing/index.ts'
import { CountingClock } from './counting-clock.ts'

const refusalOf = (url: string, options = {}) =>
  openStore(url, settingsOf(options)).then(
    () => 'not refused',
    ({ code, message }) => `${code}: ${message}`,
  )

describe('the store that a URL names', () => {
  it('memory: is one in this process, on the clock of the client', async () => {
    const clock = new TestClock()
    const store = await openStore('memory:', settingsOf({ clock }))
    expect(store.guarantees).toMatchObject({ inProcess: true, durability: 'process' })
    await store.grant({ holder: 'x', ttl: 1000, claims: [{ key: 'k' }] })
    await clock.advance(1000)
    expect((await store.read({ key: 'k' })).count).toBe(0)
    await store.close()
  })

  it('file: is the one in a folder, relative or absolute', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'leasehold open-'))
    const near = relative(process.cwd(), folder)
    for (const [url, count] of [
      [`file:${near}`, 0],
      [pathToFileURL(folder).href, 1],
      [`file:${folder}`, 2],
    ] as const) {
      const store = await openStore(url, settingsOf({}))
      expect((await store.read({ prefix: 'k' })).keys).toHaveLength(count)
      await store.grant({ holder: 'x', ttl: 60_000, claims: [{ key: `k${count}` }] })
      await store.close()
    }
    await rm(folder, { recursive: true })
  })

  it('nats: is opened by a client that has the time limit', async () => {
    let given: unknown
    const connect = async (options: unknown) => {
      given = options
      throw new Error('nobody answers')
    }
    const load = async () => ({ connect })
    const opening = openEngine('nats://h:4222', { timeout: 200, load })
    await expect(opening).rejects.toMatchObject({ code: 'timeout' })
    expect(given).toMatchObject({ timeout: 200 })
  })

  it('has % only in escapes, and the message does not show the password', async () => {
    const refusal = await refusalOf('redis://me:50%@h')
    expect(refusal).toMatch(/^invalid-argument: the password .* write %25 instead/)
    expect(refusal).not.toContain('50')
  })

  it.each(['http', 'https', 'ws', 'wss'])('%s: is that of a server', async (scheme) => {
    // Nothing listens there, so the error shows that the client tried to reach a server.
    const refusal = await refusalOf(`${scheme}://127.0.0.1:9`, { callTimeout: 20 })
    expect(refusal).toMatch(/^timeout: .*127.0.0.1:9.*20ms/)
  })

  it.each([
    ['etcd', 'etcd'],
    ['etcds', 'etcd at https:'],
    ['zookeeper', 'ZooKeeper'],
    ['azure+http', 'Azure'],
    ['azure+https', 'Azure'],
  ])('%s: is that of an engine', async (scheme, name) => {
    // Nothing listens there either. The password is base64, as Azure wants it.
    const refusal = await refusalOf(`${scheme}://me:c2VjcmV0@127.0.0.1:9/x`, { callTimeout: 20 })
    expect(refusal).toMatch(/^timeout: .*(ECONNREFUSED|20 ?ms|no answer)/)
    // On a busy machine the time is over before the connection is refused.
    if (refusal.includes('ECONNREFUSED')) expect(refusal).toContain(name)
    else expect(refusal.toLowerCase()).toContain(name.split(' ')[0]!.toLowerCase())
    expect(refusal).not.toContain('c2VjcmV0')
    expect(await refusalOf(`${scheme}://`)).toMatch(/^invalid-argument: .*without a host/)
  })

  it('azure+http: waits for an answer by the clock of the client, as long as a call may take', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const clock = new CountingClock()
    const url = `azure+http://me:c2VjcmV0@127.0.0.1:${port}/x`
    const refusal = refusalOf(url, { clock, callTimeout: 20 })
    const [connection] = await once(silent, 'connection')
    expect(clock.timers.size).toBeGreaterThan(0)
    await clock.advance(20)
    expect(await refusal).toMatch(/^timeout: Azure/)
    connection.destroy()
    silent.close()
  })

  it.each([
    ['redis://me:secret@127.0.0.1:9', /^timeout: .*ECONNREFUSED/],
    ['rediss://me:secret@127.0.0.1:9', /^timeout: .*ECONNREFUSED/],
    ['redis+sentinel://me:secret@127.0.0.1:9/main', /^timeout: /],
    ['postgres://me:secret@127.0.0.1:9/db', /ECONNREFUSED|PostgreSQL did not answer/],
    ['postgresql://me:secret@127.0.0.1:9/db?form=native', /ECONNREFUSED|PostgreSQL did not/],
    ['nats://me:secret@127.0.0.1:9', /^timeout: cannot reach NATS at 127.0.0.1:9/],
  ])('%s is opened with the npm client of its engine', async (url, expected) => {
    const refusal = await refusalOf(url, { timeout: 300 })
    expect(refusal).toMatch(expected)
    expect(refusal).not.toContain('secret')
  })

  it.each([
    'memory:x',
    'memory',
    'file:',
    'ftp://host',
    'xhttp://host',
    '1http://host',
    'httpx://host',
    'xetcd://host',
    'etcdx://host',
    'zookeepers://host',
    'azure://host',
    '',
  ])('%j is refused', async (url) => {
    expect(await refusalOf(url)).toContain(
      `invalid-argument: store ${JSON.stringify(url)} cannot be opened`,
    )
  })

  it('does not print the password of a URL that it does not know', async () => {
    const refusal = await refusalOf('htpps://me:secret@host:7420')
    expect(refusal).toContain('cannot be opened')
    expect(refusal).not.toContain('secret')
  })
})
