import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { Log } from '../../../src/log/index.ts'
import {
  getChildren,
  remove,
  setData,
  ZookeeperClient,
} from '../../../src/logs/zookeeper/client/index.ts'
import { type ZookeeperLogOptions, zookeeperLog } from '../../../src/logs/zookeeper/index.ts'
import { SEGMENT } from '../../../src/logs/zookeeper/segments.ts'
import { systemClock } from '../../../src/port/index.ts'
import { describeWith, Engine, Ensemble, ZOOKEEPER } from '../../engines/index.ts'
import { followed } from '../followed.ts'
import { faultSuite } from '../suites/fault-suite.ts'

describeWith(ZOOKEEPER, 'the ZooKeeper log, when the server', () => {
  faultSuite({
    spec: ZOOKEEPER,
    open: async (port, name) => {
      const options = { servers: `127.0.0.1:${port}`, root: `/${name}`, timeout: 3000 }
      let log: Log | undefined
      // It listens a while before it answers.
      await expect
        .poll(() => zookeeperLog(options).then((opened) => (log = opened)), { timeout: 30_000 })
        .toBeDefined()
      return { log: log!, end: async () => {} }
    },
  })
})

describeWith(ZOOKEEPER, 'the ZooKeeper log', () => {
  let engine: Engine
  const logs: Log[] = []
  beforeAll(async () => {
    engine = await Engine.start(ZOOKEEPER)
  }, 60_000)
  afterEach(async () => {
    for (const log of logs.splice(0)) await log.close()
  })
  afterAll(() => engine.stop())

  const open = async (root: string, options: Partial<ZookeeperLogOptions> = {}) => {
    const servers = `127.0.0.1:${engine.port}`
    const log = await zookeeperLog({ servers, root, timeout: '20s', ...options })
    logs.push(log)
    return log
  }

  it('continues in a next segment when one is full, and deletes old ones', async () => {
    const [log, other] = [await open('/full'), await open('/full')]
    const follower = followed(other, 0)
    const numbers = Array.from({ length: SEGMENT + 50 }, (_, at) => `${at + 1}`)
    for (let at = 0; at < numbers.length; at += 500) {
      const some = numbers.slice(at, at + 500)
      await Promise.all(
        some.map((text, index) => [log, other][index % 2]!.append(Buffer.from(text))),
      )
    }
    await follower.count(SEGMENT + 50)
    expect(new Set(follower.texts).size).toBe(SEGMENT + 50)
    expect(await log.tail()).toBe(SEGMENT + 50)
    await log.trim(SEGMENT + 10)
    expect(await followed(other, SEGMENT - 5).end()).toEqual({ cause: 'trimmed' })
    const rest = followed(other, SEGMENT + 10)
    await rest.count(40)
    expect(rest.texts).toEqual(follower.texts.slice(-40))
    expect(await (await open('/full')).append(Buffer.from('next'))).toBe(SEGMENT + 51)
  }, 90_000)

  it('refuses a client that is not authenticated as its creator', async () => {
    const auth = { scheme: 'digest', credentials: 'ada:secret' }
    await (await open('/private', { auth })).append(Buffer.from('a'))
    const forbidden = { code: 'forbidden', message: expect.stringContaining('auth') }
    await expect(open('/private')).rejects.toMatchObject(forbidden)
    expect(await (await open('/private', { auth })).tail()).toBe(1)
  }, 60_000)

  it('refuses credentials of a kind that ZooKeeper does not know', async () => {
    const auth = { scheme: 'nonsense', credentials: 'ada' }
    const refused = { code: 'unauthenticated', message: expect.stringContaining('correct auth') }
    await expect(open('/nobody', { auth, timeout: 2000 })).rejects.toMatchObject(refused)
  }, 60_000)

  it('gives the fix if the server refuses an entry of that size', async () => {
    const log = await open('/large', { entryBytes: 4_000_000 })
    await expect(log.append(new Uint8Array(3_000_000))).rejects.toMatchObject({
      code: 'unknown-outcome',
      message: expect.stringContaining('jute.maxbuffer'),
    })
    expect(await log.append(Buffer.from('small'))).toBe(1)
  }, 60_000)

  it('refuses a snapshot with a part missing or changed', async () => {
    const log = await open('/damaged')
    await log.saveSnapshot({ position: 3, chunks: [Buffer.from('one')] })
    const options = { servers: `127.0.0.1:${engine.port}`, timeout: 10_000, clock: systemClock }
    const client = new ZookeeperClient(options)
    const names = await client.call(getChildren('/damaged/parts'))
    const path = `/damaged/parts/${names.find((name) => name.endsWith('.0'))}`
    const damaged = { code: 'storage-damaged', message: expect.stringContaining('position 3') }
    await client.call(setData(path, Buffer.from('two')))
    await expect(log.loadSnapshot()).rejects.toMatchObject(damaged)
    await client.call(remove(path))
    await expect(log.loadSnapshot()).rejects.toMatchObject(damaged)
    client.close()
  }, 60_000)

  it('reports unreachable servers', async () => {
    const servers = '127.0.0.1:1'
    await expect(open('/x', { servers, timeout: 300 })).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringMatching(/ECONNREFUSED|did not answer/),
    })
  }, 60_000)
})

describeWith(ZOOKEEPER, 'the ZooKeeper log on three servers', () => {
  it('turns to another server when the leader, which it talks to, freezes', async () => {
    const ensemble = await Ensemble.start()
    const leader = await ensemble.leader()
    const others = ensemble.members.filter((each) => each !== leader)
    const servers = [leader, ...others].map(({ port }) => `127.0.0.1:${port}`).join(',')
    const log = await zookeeperLog({ servers, root: '/frozen', timeout: '20s' })
    await log.append(Buffer.from('a'))
    const follower = followed(log, 0)
    await follower.count(1)
    leader.signal('SIGSTOP')
    expect(await follower.end()).toMatchObject({ cause: 'interrupted' })
    await expect.poll(() => log.append(Buffer.from('b')), { timeout: 60_000 }).toBeGreaterThan(1)
    const next = followed(log, 0)
    await expect.poll(() => next.texts.at(-1), { timeout: 30_000 }).toBe('b')
    expect(next.texts[0]).toBe('a')
    leader.signal('SIGCONT')
    await log.close()
    await ensemble.stop()
  }, 120_000)
})
