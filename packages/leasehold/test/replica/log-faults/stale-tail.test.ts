import { expect, it } from 'vitest'
import { MemoryLog } from '../../../src/log/index.ts'
import type { LeaseStore } from '../../../src/port/index.ts'
import { replicaStore } from '../../../src/replica/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyLog } from './faulty-log.ts'

/** A replica whose engine answers from a replaced server: its tail is old, and it pushes nothing new. */
async function openBehind(clock: TestClock) {
  const shared = new MemoryLog()
  const log = new FaultyLog(shared.open())
  log.promises = { ...log.promises, tailMayBeOld: true }
  const store = await replicaStore(log, { clock, coalesce: 0, timeout: 5000 })
  const other = await replicaStore(shared.open(), { clock, coalesce: 0 })
  log.oldTail = await log.tail()
  return { log, store, other }
}

const hold = (store: LeaseStore, key: string) =>
  store.grant({ holder: 'h', ttl: 60_000, claims: [{ key }] })

it('a read sees everything that was acknowledged before it, even if the tail is old', async () => {
  const clock = new TestClock()
  const { log, store, other } = await openBehind(clock)
  log.hold()
  await hold(other, 'new')
  const reads = Promise.all([store.read({ key: 'new' }), store.read({ prefix: '' })])
  let isAnswered = false
  void reads.then(() => {
    isAnswered = true
  })
  await clock.advance(100)
  expect(isAnswered).toBe(false)
  const before = await other.read({ leases: true })
  log.release()
  await clock.advance(100)
  const [read, list] = await reads
  expect(read.claims).toHaveLength(1)
  expect(list.keys.map(({ key }) => key)).toEqual(['new'])
  // The entry of a read changes nothing.
  expect(read.revision).toBe(before.revision)
  await store.close()
  await other.close()
})

it('reads at the same time share one entry', async () => {
  const clock = new TestClock()
  const { log, store, other } = await openBehind(clock)
  const before = log.appended
  await Promise.all(Array.from({ length: 20 }, () => store.read({ leases: true })))
  expect(log.appended).toBe(before + 1)
  await store.close()
  await other.close()
})

it('a watch starts after everything that was acknowledged before it', async () => {
  const clock = new TestClock()
  const { log, store, other } = await openBehind(clock)
  log.hold()
  const { revision } = await hold(other, 'new')
  const first = new Promise((resolve) => {
    store.watch({ prefix: '' }, resolve)
  })
  await clock.advance(100)
  log.release()
  await clock.advance(100)
  expect(await first).toEqual({ type: 'watching', revision })
  await store.close()
  await other.close()
})

it('says that nothing was read if the log accepts no entry', async () => {
  const clock = new TestClock()
  const { log, store, other } = await openBehind(clock)
  log.faults.push(...Array<'lost'>(100).fill('lost'))
  const read = expect(store.read({ leases: true })).rejects.toMatchObject({
    code: 'timeout',
    message: expect.stringContaining('nothing was read'),
  })
  await clock.advance(5000)
  await read
  log.faults.length = 0
  await clock.advance(2000)
  await store.close()
  await other.close()
})
