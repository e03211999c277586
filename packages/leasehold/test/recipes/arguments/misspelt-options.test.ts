import { afterAll, describe, expect, it } from 'vitest'
import { Leasehold } from '../../../src/index.ts'
import { MemoryLog } from '../../../src/log/index.ts'
import { azureLog, azureStore } from '../../../src/logs/azure/index.ts'
import { etcdLog, etcdStore } from '../../../src/logs/etcd/index.ts'
import { natsLog, natsStore } from '../../../src/logs/nats/index.ts'
import { postgresLog } from '../../../src/logs/postgres/index.ts'
import { redisLog } from '../../../src/logs/redis/index.ts'
import { zookeeperLog, zookeeperStore } from '../../../src/logs/zookeeper/index.ts'
import { replicaStore } from '../../../src/replica/index.ts'
import { fileStore } from '../../../src/stores/file/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { remoteStore } from '../../../src/stores/remote/index.ts'

/** As in plain JavaScript, where no compiler knows the names. */
// biome-ignore lint/suspicious/noExplicitAny: the calls are wrong on purpose
type Anything = any

const leasehold: Anything = await Leasehold.open('memory:')
const Opened: Anything = Leasehold
const held = await leasehold.lock('held')
const registration = await leasehold.registry.register('s', { id: 'i' })
const election = leasehold.election('e')
const term = await leasehold.election('led').campaign()
const discovery = leasehold.registry.watch('s')
afterAll(() => leasehold.close())

async function refusalOf(call: () => unknown): Promise<string> {
  try {
    await call()
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    return `${code}: ${message}`
  }
  return 'it was not refused'
}

const def = { resources: [{ name: 'gpu' }] }

describe('a misspelt option is refused, with the name that was meant', () => {
  it.each<[string, () => unknown]>([
    [
      '"tll" is not an option of a lock: did you mean "ttl"?',
      () => leasehold.lock('k', { tll: 1 }),
    ],
    [
      '"wiat" is not an option of a lock: did you mean "wait"?',
      () => leasehold.tryLock('k', { wiat: 1 }),
    ],
    [
      '"Mode" is not an option of a lock: did you mean "mode"?',
      () => leasehold.withLock('k', { Mode: 'shared' }, () => {}),
    ],
    [
      '"timout" is not an option of a lock: did you mean "timeout"?',
      () => leasehold.lock('k', { ttl: 'adaptive', kind: 'x', timout: 1 }),
    ],
    [
      '"tll" is not an option of a lock: did you mean "ttl"?',
      () => leasehold.lock('held', { within: held, tll: 1 }),
    ],
    [
      '"kep" is not an option of once: did you mean "keep"?',
      () => leasehold.once('k', () => 1, { kep: '1h' }),
    ],
    [
      '"catchup" is not an option of cron: did you mean "catchUp"?',
      () => leasehold.cron('k', { every: '1m' }, () => 1, { catchup: '1h' }),
    ],
    [
      '"evry" is not an option of the schedule: did you mean "every"?',
      () => leasehold.cron('k', { evry: '1m' }, () => 1),
    ],
    [
      '"timeot" is not an option of release: did you mean "timeout"?',
      () => held.release({ timeot: 1 }),
    ],
    [
      '"timeot" is not an option of renew: did you mean "timeout"?',
      () => held.renew({ timeot: 1 }),
    ],
    [
      '"timeot" is not an option of update: did you mean "timeout"?',
      () => held.update('v', 'held', { timeot: 1 }),
    ],
    [
      '"hoder" is not an option of open: did you mean "holder"?',
      () => Opened.open('memory:', { hoder: 'me' }),
    ],
    [
      '"hoder" is not an option of open: did you mean "holder"?',
      () => Opened.open(memoryStore(), { hoder: 'me' }),
    ],
    [
      '"adress" is not an option of register: did you mean "address"?',
      () => leasehold.registry.register('s', { adress: 'a:1' }),
    ],
    [
      '"adress" is not an option of update: did you mean "address"?',
      () => registration.update({ adress: 'a:1' }),
    ],
    [
      '"evry" is not an option of check: did you mean "every"?',
      () => leasehold.registry.register('s', { address: 'a:1', check: { tcp: true, evry: 1 } }),
    ],
    [
      '"capabilty" is not an option of the filter of find: did you mean "capability"?',
      () => leasehold.registry.find('s', { capabilty: 'x' }),
    ],
    [
      '"timeut" is not an option of find: did you mean "timeout"?',
      () => leasehold.registry.find('s', {}, { timeut: 1 }),
    ],
    [
      '"timeut" is not an option of services: did you mean "timeout"?',
      () => leasehold.registry.services({ timeut: 1 }),
    ],
    [
      '"stratgy" is not an option of registry.watch: did you mean "strategy"?',
      () => leasehold.registry.watch('s', { stratgy: 'weighted' }),
    ],
    [
      '"zoen" is not an option of pick: did you mean "zone"?',
      () => discovery.pick('zone-first', { zoen: 'a' }),
    ],
    [
      '"concurency" is not an option of checker: did you mean "concurrency"?',
      () => leasehold.registry.checker({ concurency: 1 }),
    ],
    [
      '"metdata" is not an option of node: did you mean "metadata"?',
      () => leasehold.registry.node('n', { metdata: {} }),
    ],
    [
      '"onStoped" is not an option of nodes.watch: did you mean "onStopped"?',
      () => leasehold.registry.nodes.watch({ onStoped: () => {} }),
    ],
    [
      '"prioirty" is not an option of an election: did you mean "priority"?',
      () => leasehold.election('e', { prioirty: 1 }),
    ],
    [
      '"wiat" is not an option of campaign: did you mean "wait"?',
      () => election.campaign({ wiat: 1 }),
    ],
    [
      '"singal" is not an option of lead: did you mean "signal"?',
      () => election.lead({ singal: 1 }).next(),
    ],
    [
      '"singal" is not an option of observe: did you mean "signal"?',
      () => election.observe({ singal: 1 }),
    ],
    [
      '"timeuot" is not an option of leader: did you mean "timeout"?',
      () => election.leader({ timeuot: 1 }),
    ],
    [
      '"timeuot" is not an option of candidates: did you mean "timeout"?',
      () => election.candidates({ timeuot: 1 }),
    ],
    [
      '"limti" is not an option of listAll: did you mean "limit"?',
      () => leasehold.sessions().listAll({ limti: 1 }),
    ],
    [
      '"timeuot" is not an option of renew: did you mean "timeout"?',
      async () => (await leasehold.lock('held', { within: held })).renew({ timeuot: 1 }),
    ],
    [
      '"timeuot" is not an option of update: did you mean "timeout"?',
      async () =>
        (await leasehold.lock('held', { within: held })).update('x', 'held', { timeuot: 1 }),
    ],
    [
      '"timeuot" is not an option of resign and handOver: did you mean "timeout"?',
      () => term.resign({ timeuot: 1 }),
    ],
    [
      '"resorces" is not an option of a pool: did you mean "resources"?',
      () => leasehold.pool('p', { ...def, resorces: 1 }),
    ],
    [
      '"tennant" is not an option of take: did you mean "tenant"?',
      () => leasehold.pool('p', def).take({ tenant: 't', tennant: 't' }),
    ],
    [
      '"timeut" is not an option of status: did you mean "timeout"?',
      () => leasehold.pool('p', def).status({ timeut: 1 }),
    ],
    [
      '"tll" is not an option of sessions: did you mean "ttl"?',
      () => leasehold.sessions('main', { tll: 1 }),
    ],
    [
      '"dta" is not an option of create: did you mean "data"?',
      () => leasehold.sessions().create({ dta: 1 }),
    ],
    [
      '"limt" is not an option of list: did you mean "limit"?',
      () => leasehold.sessions().list('u', { limt: 1 }),
    ],
    [
      '"limt" is not an option of listAll: did you mean "limit"?',
      () => leasehold.sessions().listAll({ limt: 1 }),
    ],
    [
      '"timeut" is not an option of onceResult: did you mean "timeout"?',
      () => leasehold.onceResult('k', { timeut: 1 }),
    ],
    [
      '"timeut" is not an option of forgetOnce: did you mean "timeout"?',
      () => leasehold.forgetOnce('k', { timeut: 1 }),
    ],
    [
      '"excpt" is not an option of endAll: did you mean "except"?',
      () => leasehold.sessions().endAll('u', { excpt: 'x' }),
    ],
    [
      '"stor" is not an option of sessionStore: did you mean "Store"?',
      () => leasehold.sessionStore({ stor: Object }),
    ],
    [
      '"satle" is not an option of cache: did you mean "stale"?',
      () => leasehold.cache('c', { satle: 1 }),
    ],
    [
      '"clok" is not an option of memoryStore: did you mean "clock"?',
      () => memoryStore({ clok: 1 } as Anything),
    ],
    [
      '"segmentByte" is not an option of fileStore: did you mean "segmentBytes"?',
      () => fileStore('/nowhere', { segmentByte: 1 } as Anything),
    ],
    [
      '"acessToken" is not an option of remoteStore: did you mean "accessToken"?',
      () => remoteStore('http://127.0.0.1:9', { acessToken: 'x' } as Anything),
    ],
    [
      '"memoryTtl" is not an option of replicaStore: did you mean "memberTtl"?',
      () => replicaStore(new MemoryLog().open(), { memoryTtl: 1 } as Anything),
    ],
    [
      '"entryByte" is not an option of MemoryLog: did you mean "entryBytes"?',
      () => new MemoryLog({ entryByte: 1 } as Anything),
    ],
    [
      '"endpoint" is not an option of etcdLog: did you mean "endpoints"?',
      () => etcdLog({ endpoint: 'h:1' } as Anything),
    ],
    [
      '"prefx" is not an option of etcdStore: did you mean "prefix"?',
      () => etcdStore({ endpoints: 'h:1', prefx: 'x' } as Anything),
    ],
    [
      '"coalesc" is not an option of etcdStore: did you mean "coalesce"?',
      () => etcdStore({ endpoints: 'h:1', coalesc: 1 } as Anything),
    ],
    [
      '"coalesce" is not an option of zookeeperLog: use one of timeout, clock, random, servers, connect, auth, root, entryBytes',
      () => zookeeperLog({ servers: 'h:1', coalesce: 1 } as Anything),
    ],
    [
      '"rot" is not an option of zookeeperStore: did you mean "root"?',
      () => zookeeperStore({ servers: 'h:1', rot: '/x' } as Anything),
    ],
    [
      '"nam" is not an option of natsLog: did you mean "name"?',
      () => natsLog({} as Anything, { nam: 'x' } as Anything),
    ],
    [
      '"sync" is not an option of natsStore: use one of timeout, clock, random, name, replicas, synced, limits, coalesce, snapshotBytes, memberTtl, tokensAbove',
      () => natsStore({} as Anything, { sync: true } as Anything),
    ],
    [
      '"polls" is not an option of azureLog: did you mean "poll"?',
      () => azureLog('http://h/a/c', { polls: 1 } as Anything),
    ],
    [
      '"tokenAbove" is not an option of azureStore: did you mean "tokensAbove"?',
      () => azureStore('http://h/a/c', { tokenAbove: 1 } as Anything),
    ],
    [
      '"shema" is not an option of postgresLog: did you mean "schema"?',
      () => postgresLog({} as Anything, { shema: 'x' } as Anything),
    ],
    [
      '"namspace" is not an option of redisLog: did you mean "namespace"?',
      () => redisLog({} as Anything, { namspace: 'x' } as Anything),
    ],
    ['there is no event "losst": did you mean "lost"?', () => leasehold.on('losst', () => {})],
    [
      'there is no event "retuned": did you mean "returned"?',
      () => registration.on('retuned', () => {}),
    ],
    ['there is no event "joind": did you mean "joined"?', () => discovery.on('joind', () => {})],
  ])('%s', async (message, call) => {
    expect(await refusalOf(call)).toBe(`invalid-argument: ${message}`)
  })

  it('lists all names if none is near', async () => {
    const refusal = await refusalOf(() => election.campaign({ retries: 3 }))
    expect(refusal).toBe(
      'invalid-argument: "retries" is not an option of campaign: use one of wait, signal',
    )
  })
})

describe('arguments in the wrong order are refused, and nothing is done', () => {
  it.each<[string, () => unknown, RegExp]>([
    ['lock', () => leasehold.lock({ ttl: '5s' }, 'k'), /options is "k": it must be an object/],
    [
      'tryLock',
      () => leasehold.tryLock({ ttl: '5s' }, 'k'),
      /options is "k": it must be an object/,
    ],
    [
      'withLock',
      () => leasehold.withLock(() => {}, 'k'),
      /the work under a function is undefined: give a function/,
    ],
    [
      'withLock with the options last',
      () => leasehold.withLock('k', () => {}, { ttl: '5s' }),
      /options come before the work: write withLock\(keys, options, work\)/,
    ],
    [
      'open',
      () => Opened.open({ holder: 'me' }, 'memory:'),
      /options is "memory:": it must be an object/,
    ],
    ['register', () => leasehold.registry.register({ address: 'a:1' }, 's'), /no description/],
    [
      'find',
      () => leasehold.registry.find({ zone: 'z' }, 's'),
      /the filter is "s": it must be an object/,
    ],
    [
      'election',
      () => leasehold.election({ ttl: '5s' }, 'e'),
      /options is "e": it must be an object/,
    ],
    ['pool', () => leasehold.pool(def, 'p'), /the pool's name is an object/],
    ['cache', () => leasehold.cache({ ttl: 1 }, 'c'), /options is "c": it must be an object/],
    [
      'cache.get',
      () => leasehold.cache('c').get(() => 1, 'k'),
      /the loader of a function is "k": give a function/,
    ],
    [
      'cache.get with options',
      () => leasehold.cache('c').get('k', () => 1, { ttl: '5s' }),
      /get has no options: give them to cache\("c", options\)/,
    ],
    [
      'sessions',
      () => leasehold.sessions({ ttl: 1 }, 'main'),
      /options is "main": it must be an object/,
    ],
    [
      'on',
      () => leasehold.on(() => {}, 'lost'),
      /there is no event a function: use one of acquired/,
    ],
    [
      'on without a listener',
      () => leasehold.on('lost'),
      /the listener of "lost" is undefined: give a function/,
    ],
  ])('%s', async (_name, call, message) => {
    const refusal = await refusalOf(call)
    expect(refusal).toMatch(/^invalid-argument: /)
    expect(refusal).toMatch(message)
  })

  it.each([
    ['tryLock', 'lock', () => leasehold.tryLock('k', { wait: '1s' })],
    ['tryLock', 'lock', () => leasehold.tryLock('k', { ttl: 'adaptive', kind: 'x', wait: '1s' })],
    ['tryTake', 'take', () => leasehold.pool('gpu', def).tryTake({ tenant: 't', wait: '1s' })],
  ])('%s refuses a wait, because it never waits, and names %s', async (call, waiting, refused) => {
    expect(await refusalOf(refused)).toBe(
      `invalid-argument: wait is "1s", and ${call} never waits: use ${waiting}(…, { wait: "1s" }) instead, or 'timeout' to limit the call`,
    )
  })

  it('tryLock takes a wait of 0 and a wait that is undefined', async () => {
    for (const wait of [0, '0s', undefined]) {
      await using attempt = await leasehold.tryLock('k0', { wait })
      expect(attempt.lock?.held).toBe(true)
    }
  })

  it('new Leasehold() says what to write instead', () => {
    expect(() => new Opened('memory:')).toThrow(
      "new Leasehold() opens nothing: write 'await Leasehold.open(url)'",
    )
  })
})

it('an option that is given as undefined is no mistake', async () => {
  const lock = await leasehold.lock('free', { ttl: undefined, wait: undefined, signal: undefined })
  expect(lock.held).toBe(true)
})
