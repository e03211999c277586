import { afterEach, describe, expect, it } from 'vitest'
import type { Log } from '../../../src/log/index.ts'
import { type EtcdLogOptions, etcdLog } from '../../../src/logs/etcd/index.ts'
import {
  compactEtcd,
  describeWith,
  Engine,
  type EngineSpec,
  ETCD,
  EtcdCluster,
  etcdCall,
  NEWER_ETCD,
} from '../../engines/index.ts'
import { followed } from '../followed.ts'
import { faultSuite } from '../suites/fault-suite.ts'

const running: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of running.splice(0).reverse()) await stop()
})

async function start(...args: string[]): Promise<Engine> {
  const spec: EngineSpec = {
    ...ETCD,
    args: (folder, port) => [...ETCD.args(folder, port), ...args],
  }
  const engine = await Engine.start(spec)
  running.push(() => engine.stop())
  return engine
}

async function open(
  endpoints: string | readonly string[],
  options: Partial<EtcdLogOptions> = {},
): Promise<Log> {
  const log = await etcdLog({ endpoints, prefix: 'log/', timeout: '20s', ...options })
  running.push(() => log.close())
  return log
}

for (const spec of [ETCD, NEWER_ETCD]) {
  describeWith(spec, `the log on ${spec.name}, when the server`, () => {
    faultSuite({
      spec,
      open: async (port, name) => {
        const endpoints = `127.0.0.1:${port}`
        const log = await etcdLog({ endpoints, prefix: `${name}/`, timeout: 3000 })
        return { log, end: async () => {} }
      },
    })
  })
}

describeWith(ETCD, 'the etcd log', () => {
  it('reports an unreachable etcd with its address, and resumes when it is reachable', async () => {
    const engine = await start()
    const log = await open(`127.0.0.1:${engine.port}`, { timeout: 2000 })
    await engine.kill()
    await expect(open(`127.0.0.1:${engine.port}`)).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining(`127.0.0.1:${engine.port}`),
    })
    const unreachable = { code: 'unknown-outcome', message: expect.stringMatching(/ECONNREFUSED/) }
    await expect(log.append(Buffer.from('a'))).rejects.toMatchObject(unreachable)
    await expect(log.tail()).rejects.toMatchObject({
      message: expect.stringContaining(`127.0.0.1:${engine.port}`),
    })
    expect(await followed(log, 0).end()).toMatchObject({ cause: 'interrupted', error: unreachable })
    await engine.restart()
    expect(await log.append(Buffer.from('a'))).toBe(await log.tail())
  }, 60_000)

  it('refuses an entry that is larger than this etcd accepts', async () => {
    const { port } = await start('--max-request-bytes', '100000')
    const log = await open(`127.0.0.1:${port}`)
    await expect(log.append(new Uint8Array(200_000))).rejects.toMatchObject({
      code: 'limit-exceeded',
      message: expect.stringContaining('--max-request-bytes'),
    })
    expect(await log.tail()).toBe(0)
  }, 60_000)

  it('reports an exhausted quota', async () => {
    const { port } = await start('--quota-backend-bytes', '2000000')
    const log = await open(`127.0.0.1:${port}`)
    const fill = async () => {
      for (let count = 0; count < 20; count++) await log.append(new Uint8Array(500_000))
    }
    await expect(fill()).rejects.toMatchObject({
      code: 'storage-full',
      message: expect.stringContaining('quota'),
    })
    expect(await log.tail()).toBeGreaterThan(0)
  }, 60_000)

  it('distinguishes a missing or wrong login from a missing right', async () => {
    const { port } = await start()
    for (const name of ['root', 'ada', 'bob']) {
      await etcdCall(port, 'auth/user/add', { name, password: `${name}-secret` })
    }
    for (const name of ['root', 'writer']) await etcdCall(port, 'auth/role/add', { name })
    const [key, end] = ['log/', 'log0'].map((text) => Buffer.from(text).toString('base64'))
    const perm = { permType: 'READWRITE', key, range_end: end }
    await etcdCall(port, 'auth/role/grant', { name: 'writer', perm })
    await etcdCall(port, 'auth/user/grant', { user: 'root', role: 'root' })
    await etcdCall(port, 'auth/user/grant', { user: 'ada', role: 'writer' })
    await etcdCall(port, 'auth/enable')
    const as = async (username: string, password = `${username}-secret`) =>
      open(`127.0.0.1:${port}`, { auth: { username, password } })
    const append = (log: Log) => log.append(Buffer.from('a'))
    const unauthenticated = { code: 'unauthenticated', message: expect.stringContaining('auth') }
    await expect(open(`127.0.0.1:${port}`)).rejects.toMatchObject(unauthenticated)
    await expect(as('ada', 'wrong')).rejects.toMatchObject(unauthenticated)
    await expect(as('bob')).rejects.toMatchObject({ code: 'forbidden' })
    const log = await as('ada')
    const follower = followed(log, 0)
    await append(log)
    await follower.count(1)
  }, 60_000)

  it('refuses a snapshot with a part missing or changed', async () => {
    const { port } = await start()
    const log = await open(`127.0.0.1:${port}`)
    await log.saveSnapshot({ position: 3, chunks: [Buffer.from('one')] })
    const encode = (text: string) => Buffer.from(text).toString('base64')
    const range = { key: encode('log/part/3.'), range_end: encode('log/part/3/') }
    const { kvs } = (await etcdCall(port, 'kv/range', range)) as { kvs: { key: string }[] }
    const chunk = kvs.find(({ key }) => Buffer.from(key, 'base64').toString().endsWith('.0'))!
    const damaged = { code: 'storage-damaged', message: expect.stringContaining('position 3') }
    await etcdCall(port, 'kv/put', { key: chunk.key, value: encode('two') })
    await expect(log.loadSnapshot()).rejects.toMatchObject(damaged)
    await etcdCall(port, 'kv/deleterange', { key: chunk.key })
    await expect(log.loadSnapshot()).rejects.toMatchObject(damaged)
  }, 60_000)

  it('follows on when etcd was compacted, and past a page of entries', async () => {
    const { port } = await start()
    const log = await open(`127.0.0.1:${port}`)
    const first = await log.append(Buffer.from('0'))
    const numbers = Array.from({ length: 2100 }, (_, at) => Buffer.from(`${at + 1}`))
    await Promise.all(numbers.map((bytes) => log.append(bytes)))
    await compactEtcd(port, await log.tail())
    const follower = followed(log, first)
    await follower.count(2100)
    expect(new Set(follower.texts).size).toBe(2100)
    await log.append(Buffer.from('more'))
    await follower.count(2101)
  }, 60_000)

  it('does not trim an entry that arrived late under an old name', async () => {
    const { port } = await start()
    const [log, idle] = [await open(`127.0.0.1:${port}`), await open(`127.0.0.1:${port}`)]
    for (const text of ['a', 'b']) await log.append(Buffer.from(text))
    const through = await log.append(Buffer.from('c'))
    // Has seen nothing of the log, so its name comes before all others.
    await idle.append(Buffer.from('late'))
    await log.trim(through)
    const follower = followed(log, through)
    await follower.count(1)
    expect(follower.texts).toEqual(['late'])
    expect(await followed(log, 0).end()).toEqual({ cause: 'trimmed' })
    const last = await log.append(Buffer.from('d'))
    await log.trim(last)
    const key = Buffer.from('log/entry/').toString('base64')
    const end = Buffer.from('log/entry0').toString('base64')
    const left = (await etcdCall(port, 'kv/range', { key, range_end: end })) as { count?: string }
    expect(left.count).toBeUndefined()
  }, 60_000)
})

describeWith(ETCD, 'the etcd log on three members', () => {
  describe('when the member that it talks to freezes', () => {
    it('ends its follower, and turns to another member', async () => {
      const cluster = await EtcdCluster.start()
      running.push(() => cluster.stop())
      const leader = await cluster.leader()
      const frozen = (leader + 1) % 3
      const { endpoints } = cluster
      const order = [endpoints[frozen]!, ...endpoints.filter((_, at) => at !== frozen)]
      const log = await open(order, { memberTimeout: 500 })
      await log.append(Buffer.from('a'))
      const follower = followed(log, 0)
      await follower.count(1)
      cluster.members[frozen]!.signal('SIGSTOP')
      expect(await follower.end()).toMatchObject({ cause: 'interrupted' })
      await log.append(Buffer.from('b'))
      const next = followed(log, 0)
      await next.count(2)
      cluster.members[frozen]!.signal('SIGCONT')
    }, 60_000)
  })
})
