import { connect, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type NatsLogOptions, natsLog } from '../../../src/logs/nats/index.ts'
import { replicaStore } from '../../../src/replica/index.ts'
import {
  describeWith,
  Engine,
  NATS,
  NatsCluster,
  NEWER_NATS,
  natsServer,
} from '../../engines/index.ts'
import { faultSuite, take, takeAndFree } from '../suites/fault-suite.ts'

const POLL = { timeout: 30_000 }

const connectTo = (servers: string | string[], more: object = {}) =>
  connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 100, ...more })

async function openAt(servers: string | string[], options: NatsLogOptions) {
  const client = await connectTo(servers)
  const log = await natsLog(client, { timeout: 2000, ...options })
  return { log, end: () => client.close() }
}

describeWith(NATS, 'the NATS log, when the server', () => {
  faultSuite({ spec: NATS, open: (port, name) => openAt(`127.0.0.1:${port}`, { name }) })
})

/** One user may do everything, the other may not publish to the log. */
const USERS = natsServer([
  'authorization { users: [',
  '  { user: "all", password: "x" }',
  '  { user: "some", password: "x", permissions: { publish: { deny: ["kept.log"] } } }',
  '] }',
])

describeWith(NATS, 'the NATS log refuses', () => {
  let engine: Engine
  let client: NatsConnection
  const ask = (call: string, request: object) =>
    client.request(`$JS.API.${call}`, JSON.stringify(request))

  beforeAll(async () => {
    engine = await Engine.start(USERS)
    client = await connectTo(`127.0.0.1:${engine.port}`, { user: 'all', pass: 'x' })
  })

  afterAll(async () => {
    await client?.close()
    await engine?.stop()
  })

  it('a subject that the user may not publish to, with the fix', async () => {
    const login = { user: 'some', pass: 'x' }
    const other = await connectTo(`127.0.0.1:${engine.port}`, login)
    const log = await natsLog(other, { name: 'kept' })
    await expect(log.append(Buffer.from('a'))).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('docs/nats.md'),
    })
    await other.close()
    await expect(log.tail()).rejects.toMatchObject({ code: 'closed' })
  })

  it('a stream that is full', async () => {
    const log = await natsLog(client, { name: 'full' })
    const full = { name: 'full', subjects: ['full.log'], storage: 'file', discard: 'new' }
    await ask('STREAM.UPDATE.full', { ...full, max_bytes: 1000 })
    await log.append(new Uint8Array(500))
    await expect(log.append(new Uint8Array(600))).rejects.toMatchObject({ code: 'storage-full' })
  })

  it('an entry that the stream does not take, with the fix', async () => {
    const log = await natsLog(client, { name: 'small' })
    const small = { name: 'small', subjects: ['small.log'], storage: 'file', discard: 'new' }
    await ask('STREAM.UPDATE.small', { ...small, max_msg_size: 1000 })
    await expect(log.append(new Uint8Array(1001))).rejects.toMatchObject({
      code: 'limit-exceeded',
      message: expect.stringContaining('max_msg_size'),
    })
  })

  it('a server without JetStream, with the fix', async () => {
    const plain = await Engine.start({
      ...NATS,
      args: (_, port) => ['-a', '127.0.0.1', '-p', `${port}`],
    })
    const other = await connectTo(`127.0.0.1:${plain.port}`)
    await expect(natsLog(other)).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('-js'),
    })
    await other.close()
    await plain.stop()
  })

  it('a stream that belongs to something else, or drops entries', async () => {
    const stream = { storage: 'file', discard: 'new' }
    await ask('STREAM.CREATE.other', { ...stream, name: 'other', subjects: ['orders.*'] })
    await expect(natsLog(client, { name: 'other' })).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('orders.*'),
    })
    const old = { ...stream, name: 'old', subjects: ['old.log'], max_age: 60_000_000_000 }
    await ask('STREAM.CREATE.old', old)
    await expect(natsLog(client, { name: 'old' })).rejects.toMatchObject({ code: 'unsupported' })
  })

  it('a snapshot with a part missing or changed', async () => {
    const log = await natsLog(client, { name: 'snap' })
    await log.saveSnapshot({ position: 3, chunks: [Buffer.from('one'), Buffer.from('two')] })
    const info = await ask('STREAM.INFO.snap_snapshots', { subjects_filter: '>' })
    const subjects = Object.keys(info.json<{ state: { subjects: object } }>().state.subjects)
    const filter = subjects.find((subject) => subject.endsWith('.1'))!
    await client.request(filter, 'changed')
    await expect(log.loadSnapshot()).rejects.toMatchObject({ code: 'storage-damaged' })
    await ask('STREAM.PURGE.snap_snapshots', { filter })
    await expect(log.loadSnapshot()).rejects.toMatchObject({
      code: 'storage-damaged',
      message: expect.stringContaining('missing'),
    })
  })

  it('an invalid client, and invalid options', async () => {
    await expect(natsLog({} as NatsConnection)).rejects.toMatchObject({ code: 'invalid-argument' })
    for (const options of [{ name: 'a.b' }, { replicas: 2 }, { timeout: 0 }]) {
      await expect(natsLog(client, options)).rejects.toMatchObject({ code: 'invalid-argument' })
    }
  })

  it('to open if the server does not answer', async () => {
    await engine.freeze()
    const opening = natsLog(client, { name: 'silent', timeout: 300 })
    await expect(opening).rejects.toMatchObject({ code: 'timeout' })
    engine.thaw()
  })
})

describeWith(NEWER_NATS, 'the NATS log on a cluster of three', () => {
  let cluster: NatsCluster

  beforeAll(async () => {
    cluster = await NatsCluster.start()
  }, 60_000)

  afterAll(() => cluster?.stop())

  /** The servers are ready before they have elected one that may create streams. */
  const created = async (client: NatsConnection, options: NatsLogOptions) => {
    const isOpen = async () => (await natsLog(client, options)).promises.tailMayBeOld
    await expect.poll(() => isOpen().catch(() => undefined), POLL).toBe(true)
  }

  it('reads acknowledged entries, from a leader that was frozen and replaced', async () => {
    const client = await connectTo(cluster.servers)
    const options = { name: 'frozen', replicas: 3, timeout: 1000 }
    await created(client, options)
    const leader = await cluster.leader(client, 'frozen')
    await client.close()
    const open = async (members: readonly Engine[]) => {
      const servers = members.map(({ port }) => `127.0.0.1:${port}`)
      const own = await connectTo(servers, { ignoreClusterUpdates: true })
      const store = await replicaStore(await natsLog(own, options), { timeout: 60_000 })
      return { own, store }
    }
    const old = await open([leader])
    const other = await open(cluster.members.filter((each) => each !== leader))
    await leader.freeze()
    const token = await take(other.store, 'new')
    // The old leader has this request before it learns that it leads no more.
    const reading = old.store.read({ key: 'new' })
    leader.thaw()
    expect((await reading).claims).toMatchObject([{ token }])
    for (const { own, store } of [old, other]) {
      await store.close()
      await own.close()
    }
  }, 120_000)

  it('loses nothing when the server that leads is killed', async () => {
    const client = await connectTo(cluster.servers)
    const options = { name: 'three', replicas: 3, timeout: 1000 }
    const open = async () => replicaStore(await natsLog(client, options), { timeout: 30_000 })
    await created(client, options)
    const stores = [await open(), await open()]
    expect(stores[0]!.guarantees).toMatchObject({ engine: 'nats', tokensSurvive: 'failover' })
    const token = await take(stores[0]!, 'held')
    const tokens = [await takeAndFree(stores[0]!, 'before')]
    await (await cluster.leader(client, 'three')).kill()
    for (let round = 0; round < 4; round++) {
      tokens.push(await takeAndFree(stores[round % 2]!, `request-${round}`))
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other))
    const { claims } = await stores[1]!.read({ key: 'held' })
    expect(claims).toMatchObject([{ token }])
    for (const store of stores) await store.close()
    await client.close()
  }, 90_000)
})
