import { describe, expect, it } from 'vitest'
import { MemoryLog } from '../../../src/log/index.ts'
import { LeaseholdError, type LeaseStore, systemRandom } from '../../../src/port/index.ts'
import { replicaStore } from '../../../src/replica/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { type AppendFault, FaultyLog } from './faulty-log.ts'

/** Waits between attempts are as long as they can be, in every run. */
const random = { ...systemRandom, next: () => 1 }

async function open(shared = new MemoryLog(), clock = new TestClock()) {
  const log = new FaultyLog(shared.open())
  const store = await replicaStore(log, { clock, random, coalesce: 0, timeout: 5000 })
  return { shared, clock, log, store }
}

const hold = (store: LeaseStore, key: string) =>
  store.grant({ holder: 'h', ttl: 60_000, claims: [{ key }] })

describe('a replica whose appends fail', () => {
  it.each<[AppendFault]>([['lost'], ['answer lost'], ['twice']])(
    'carries out each call once (%s)',
    async (fault) => {
      const { clock, log, store } = await open()
      log.faults.push(fault, fault)
      const calls = Array.from({ length: 5 }, (_, at) => hold(store, `key-${at}`))
      await clock.advance(200)
      const answers = await Promise.all(calls)
      expect(answers.map(({ revision }) => revision)).toEqual([1, 2, 3, 4, 5])
      expect(await store.read({ leases: true })).toMatchObject({ revision: 5 })
      await store.close()
    },
  )

  it('reports an unknown outcome if the log does not answer in time, and continues', async () => {
    const { clock, log, store } = await open()
    log.faults.push(...Array<AppendFault>(100).fill('lost'))
    const call = hold(store, 'a')
    const refused = expect(call).rejects.toMatchObject({ outcome: 'unknown' })
    await clock.advance(5000)
    await refused
    log.faults.length = 0
    await clock.advance(2000)
    expect(await hold(store, 'b')).toMatchObject({ outcome: 'granted' })
    await store.close()
  })
})

describe('an entry that arrives too late', () => {
  it('is written again, and each of its calls is carried out once', async () => {
    const { shared, clock, log, store } = await open()
    const other = await open(shared, clock)
    log.faults.push(...Array<AppendFault>(50).fill('lost'))
    const call = hold(store, 'late')
    await clock.advance(100)
    // So many entries that no replica still has the mark of the position where it was written.
    for (let at = 0; at < 1100; at++) await hold(other.store, `key-${at}`)
    log.faults.length = 0
    await clock.advance(2000)
    expect(await call).toMatchObject({ outcome: 'granted', revision: 1101 })
    expect((await other.store.read({ prefix: 'late' })).keys).toHaveLength(1)
    await store.close()
    await other.store.close()
  })
})

describe('a replica that is disconnected from its log', () => {
  it('continues where it was when it is connected again', async () => {
    const { shared, clock, log, store } = await open()
    const other = await open(shared, clock)
    await hold(store, 'a')
    log.interrupt()
    await hold(other.store, 'b')
    const reading = store.read({ prefix: '' })
    await clock.advance(100)
    expect((await reading).keys.map(({ key }) => key)).toEqual(['a', 'b'])
    await store.close()
    await other.store.close()
  })

  it('joins again after it was removed, and loses no call', async () => {
    const { shared, clock, log, store } = await open()
    const other = await open(shared, clock)
    await hold(store, 'a')
    // None of its entries reaches the log for longer than memberTtl.
    log.faults.push(...Array<AppendFault>(40).fill('lost'))
    for (let passed = 0; passed < 36; passed++) await clock.advance(1000)
    log.faults.length = 0
    const held = hold(store, 'b')
    await clock.advance(2000)
    expect(await held).toMatchObject({ outcome: 'granted' })
    expect((await other.store.read({ prefix: '' })).keys.map(({ key }) => key)).toEqual(['a', 'b'])
    await store.close()
    await other.store.close()
  })

  it('loads a snapshot if the entries that it has not seen were trimmed', async () => {
    const shared = new MemoryLog()
    const clock = new TestClock()
    const { log, store } = await open(shared, clock)
    const writer = await replicaStore(shared.open(), { clock, coalesce: 0, snapshotBytes: 1000 })
    await hold(store, 'first')
    log.interrupt()
    for (let at = 0; at < 60; at++) await hold(writer, `key-${at}`)
    await clock.advance(200)
    expect(await store.read({ prefix: '' })).toEqual(await writer.read({ prefix: '' }))
    expect(await hold(store, 'last')).toMatchObject({ outcome: 'granted' })
    await store.close()
    await writer.close()
  })

  it('does not resend a call that may have been applied before its removal and a trim', async () => {
    const shared = new MemoryLog()
    const clock = new TestClock()
    const options = {
      clock,
      random,
      coalesce: 0,
      snapshotBytes: 1000,
      memberTtl: 3000,
      timeout: 60_000,
    }
    const log = new FaultyLog(shared.open())
    const store = await replicaStore(log, options)
    const writer = await replicaStore(shared.open(), options)
    log.isCut = true
    log.interrupt()
    log.faults.push('answer lost', ...Array<'lost'>(100).fill('lost'))
    const call = hold(store, 'mine')
    const settled = expect(call).rejects.toMatchObject({ code: 'unknown-outcome' })
    // The writer removes it, and trims the log until the outcome of its entry cannot be known.
    await clock.advance(4000)
    for (let at = 0; at < 60; at++) {
      await hold(writer, `key-${at}`)
      await clock.advance(0)
    }
    log.isCut = false
    log.faults.splice(0)
    await clock.advance(2000)
    await settled
    expect(await store.read({ key: 'mine' })).toMatchObject({ count: 1 })
    expect(await hold(store, 'last')).toMatchObject({ outcome: 'granted' })
    await Promise.all([store.close(), writer.close()])
  })
})

describe('replicas that open at the same time', () => {
  it('create one log together', async () => {
    const shared = new MemoryLog()
    const clock = new TestClock()
    const opened = await Promise.all([1, 2, 3].map(() => open(shared, clock)))
    for (const [at, { store }] of opened.entries()) await hold(store, `key-${at}`)
    for (const { store } of opened) {
      expect((await store.read({ prefix: '' })).keys).toHaveLength(3)
    }
    for (const { store } of opened) await store.close()
  })

  it('fail with the reason if the log accepts nothing', async () => {
    const log = new FaultyLog(new MemoryLog({ entryBytes: 8 }).open())
    await expect(replicaStore(log, { clock: new TestClock() })).rejects.toMatchObject({
      code: 'limit-exceeded',
    })
  })
})

describe('a read', () => {
  it('fails if the log cannot be followed for too long, and when the store is closed', async () => {
    const { shared, clock, log, store } = await open()
    const other = await open(shared, clock)
    log.isCut = true
    log.interrupt()
    await hold(other.store, 'a')
    const late = expect(store.read({ prefix: '' })).rejects.toMatchObject({ code: 'timeout' })
    await clock.advance(5000)
    await late
    const closed = expect(store.read({ prefix: '' })).rejects.toMatchObject({ code: 'closed' })
    await clock.settle()
    await store.close()
    await closed
    await other.store.close()
  })
})

describe('the last replica', () => {
  it('ends the leases of crashed holders after it has counted a full ttl itself', async () => {
    const { shared, clock, store } = await open()
    const { lease } = (await store.grant({ holder: 'h', ttl: 1000 })) as { lease: string }
    await clock.advance(900)
    const late = await open(shared, clock)
    await store.close()
    await clock.advance(900)
    expect((await late.store.read({ lease })).lease).toBeDefined()
    await clock.advance(200)
    expect((await late.store.read({ lease })).lease).toBeUndefined()
    await late.store.close()
  })
})

describe('a log that refuses', () => {
  it.each<[AppendFault]>([['forbidden'], ['unauthenticated'], ['storage-full']])(
    'fails only the call that it refused (%s)',
    async (fault) => {
      const { log, store } = await open()
      log.faults.push(fault)
      await expect(hold(store, 'a')).rejects.toMatchObject({ code: fault })
      expect(await hold(store, 'b')).toMatchObject({ outcome: 'granted' })
      await store.close()
    },
  )

  it('does not stop a replica that has to join again', async () => {
    const { shared, clock, log, store } = await open()
    const other = await open(shared, clock)
    log.faults.push(...Array<AppendFault>(40).fill('lost'))
    for (let passed = 0; passed < 35; passed++) await clock.advance(1000)
    log.faults.splice(0, Infinity, ...Array<AppendFault>(3).fill('storage-full'))
    await clock.advance(5000)
    expect(await hold(store, 'b')).toMatchObject({ outcome: 'granted' })
    await store.close()
    await other.store.close()
  })

  it('leaves the outcome unknown if an earlier attempt may have been carried out', async () => {
    const { clock, log, store } = await open()
    log.isCut = true
    log.interrupt()
    log.faults.push('answer lost', 'storage-full')
    const call = expect(hold(store, 'a')).rejects.toMatchObject({ code: 'unknown-outcome' })
    await clock.advance(200)
    await call
    await store.close()
  })
})

describe('an engine that cannot be reached', () => {
  const shared = () => new FaultyLog(new MemoryLog().open())

  it.each([
    ['fails', new Error('connect ECONNREFUSED'), 'ECONNREFUSED'],
    ['never answers', 'never answered' as const, 'could not be read for 5000 ms'],
  ])('lets open fail in time, with the reason (%s)', async (_how, reads, why) => {
    const clock = new TestClock()
    const log = shared()
    log.reads = reads
    const opening = replicaStore(log, { clock, timeout: 5000 })
    const refused = expect(opening).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining(why),
    })
    await clock.advance(5000)
    await refused
  })

  it('lets open succeed when it is reachable again', async () => {
    const clock = new TestClock()
    const log = shared()
    log.reads = new Error('connect ECONNREFUSED')
    const opening = replicaStore(log, { clock, timeout: 5000 })
    await clock.advance(2000)
    log.reads = undefined
    await clock.advance(1000)
    await (await opening).close()
  })

  it('lets open fail at once if the refusal is permanent', async () => {
    const log = shared()
    log.reads = new LeaseholdError('unauthenticated', 'who are you?')
    const opening = replicaStore(log, { clock: new TestClock(), timeout: 5000 })
    await expect(opening).rejects.toMatchObject({ code: 'unauthenticated' })
  })

  it('lets reads fail in time, and succeed when it is reachable again', async () => {
    const { clock, log, store } = await open()
    await hold(store, 'a')
    for (const reads of [new Error('connect ECONNREFUSED'), 'never answered' as const]) {
      log.reads = reads
      const late = expect(store.read({ prefix: '' })).rejects.toMatchObject({ code: 'timeout' })
      await clock.advance(5000)
      await late
    }
    log.reads = undefined
    expect((await store.read({ prefix: '' })).keys).toHaveLength(1)
    log.reads = new Error('connect ECONNREFUSED')
    const reading = store.read({ prefix: '' })
    await clock.advance(1000)
    log.reads = undefined
    await clock.advance(1000)
    expect((await reading).keys).toHaveLength(1)
    await store.close()
  })

  it('gives its last error to a caller whose call timed out', async () => {
    const { clock, log, store } = await open()
    log.faults.push(...Array<AppendFault>(100).fill('lost'))
    const call = expect(hold(store, 'a')).rejects.toThrow('(the connection broke)')
    await clock.advance(5000)
    await call
    await store.close()
  })
})

describe('renewals', () => {
  it('that do not fit into one entry go into the next one, in time', async () => {
    const clock = new TestClock()
    const shared = new MemoryLog({ entryBytes: 4096 })
    const store = await replicaStore(shared.open(), { clock, coalesce: 50 })
    const leases: string[] = []
    for (let at = 0; at < 400; at++) {
      const granted = await store.grant({ holder: 'h', ttl: 60_000 })
      leases.push((granted as { lease: string }).lease)
    }
    const renewing = store.renew(leases)
    let isDone = false
    void renewing.then(() => {
      isDone = true
    })
    await clock.advance(500)
    expect(isDone).toBe(true)
    expect(await renewing).toEqual({ lost: [], capped: [] })
    await store.close()
  })
})

describe('an entry', () => {
  it('is split if the calls of one tick do not fit into it', async () => {
    const clock = new TestClock()
    const shared = new MemoryLog({ entryBytes: 4096 })
    const store = await replicaStore(shared.open(), { clock, coalesce: 0 })
    const value = 'x'.repeat(1000)
    const calls = Array.from({ length: 30 }, (_, at) =>
      store.grant({ holder: 'h', ttl: 60_000, claims: [{ key: `key-${at}`, value }] }),
    )
    await clock.advance(10)
    expect((await Promise.all(calls)).map(({ revision }) => revision)).toHaveLength(30)
    const leases = (await Promise.all(calls)).map((each) => (each as { lease: string }).lease)
    const renewing = store.renew([...leases, ...leases.map((id) => `${id}9`)])
    await clock.advance(10)
    expect((await renewing).lost).toHaveLength(30)
    await clock.advance(60_000)
    expect((await store.read({ leases: true })).leases).toEqual([])
    await store.close()
  })

  it('is refused if one call is too large for it, with both sizes', async () => {
    const clock = new TestClock()
    const store = await replicaStore(new MemoryLog({ entryBytes: 2048 }).open(), { clock })
    const value = 'x'.repeat(3000)
    const call = store.grant({ holder: 'h', ttl: 60_000, claims: [{ key: 'k', value }] })
    await expect(call).rejects.toThrow(/has 30\d\d bytes.*room for 1536/)
    await store.close()
  })
})
