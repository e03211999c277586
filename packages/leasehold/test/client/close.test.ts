import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { TestClock } from '../../src/testing/index.ts'
import { FaultyStore } from './faulty-store.ts'

async function open(inProcess: boolean) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = new FaultyStore(inner, clock, inProcess)
  const leasehold = await Leasehold.open(store, { clock })
  const leases = async () => (await inner.read({ leases: true })).leases.length
  return { clock, inner, store, leasehold, leases }
}

describe.each([
  ['in this process', true],
  ['elsewhere', false],
])('closing a client of a store %s', (_name, inProcess) => {
  it('immediately ends a call that was sent again and is not answered', async () => {
    const { clock, store, leasehold } = await open(inProcess)
    const lock = await leasehold.lock('k', { ttl: '1h' })
    const error = new Error('broken')
    store.fault = (call) => {
      if (call !== 'update') return undefined
      return store.count('update') === 1 ? { error } : { lost: 'request' }
    }
    const updated = lock.update('x').catch(({ code }) => code)
    await clock.advance(100)
    expect(store.count('update')).toBe(2)
    await leasehold.close()
    expect(await updated).toBe('lost')
  })

  it('releases everything and notifies the holders at once', async () => {
    const { clock, inner, leasehold, leases } = await open(inProcess)
    const locks = [
      await leasehold.lock('a'),
      await leasehold.lock('b', { ttl: '1s' }),
      await leasehold.lock('c', { maxHold: '1h' }),
    ]
    const signals = locks.map((lock) => lock.signal)
    const next = (await Leasehold.open(inner, { clock })).lock('a')
    const closing = leasehold.close()
    for (const signal of signals) {
      expect(signal.reason).toMatchObject({ code: 'lost', reason: 'closed' })
    }
    await closing
    expect((await next).held).toBe(true)
    expect(await leases()).toBe(1)
    for (const lock of locks) await lock.release()
    const [tenure] = (await inner.read({ history: 'a' })).tenures
    const by = leasehold.holder
    expect(tenure!.end).toMatchObject({ reason: 'revoked', by, why: 'closed' })
  })

  it('ends waits and later calls with closed', async () => {
    const { clock, inner, leasehold } = await open(inProcess)
    const rival = await Leasehold.open(inner, { clock })
    await rival.lock('k')
    const waits = [
      leasehold.lock('k'),
      leasehold.lock('k', { wait: '1m' }),
      leasehold.lock('k', { maxHold: '1m' }),
    ].map((wait) => wait.catch((error) => error))
    await clock.settle()
    await leasehold.close()
    for (const error of await Promise.all(waits)) expect(error).toMatchObject({ code: 'closed' })
    await expect(leasehold.lock('k')).rejects.toMatchObject({ code: 'closed' })
    expect((await inner.read({ key: 'k' })).count).toBe(1)
  })

  it('makes no calls to the store afterwards', async () => {
    const { store, leasehold, inner } = await open(inProcess)
    await leasehold.close()
    const calls: string[] = []
    store.fault = (call) => {
      calls.push(call)
      return undefined
    }
    await expect(leasehold.lock('k')).rejects.toMatchObject({ code: 'closed' })
    await expect(leasehold.tryLock('k')).rejects.toMatchObject({ code: 'closed' })
    expect(calls).toEqual([])
    expect((await inner.read({ leases: true })).revision).toBe(0)
  })

  it('ends pending calls, and leaves nothing behind', async () => {
    const { clock, store, leasehold, leases } = await open(inProcess)
    await leasehold.lock('other')
    store.fault = (call) => (call === 'grant' || call === 'claim' ? { back: 100 } : undefined)
    const calls = [leasehold.lock('a'), leasehold.lock('b', { ttl: '1s' })]
    const errors = calls.map((call) => call.catch((error) => error))
    await clock.settle()
    const closing = leasehold.close()
    await clock.advance(1000)
    await closing
    for (const error of await Promise.all(errors)) expect(error).toMatchObject({ code: 'closed' })
    expect(await leases()).toBe(0)
  })

  it('does not wait forever for a store that does not answer', async () => {
    const { clock, store, leasehold } = await open(inProcess)
    const lock = await leasehold.lock('k')
    store.freeze()
    let closed = false
    void leasehold.close().then(() => {
      closed = true
    })
    expect(lock.signal.aborted).toBe(true)
    await clock.advance(6000)
    expect(closed).toBe(true)
  })

  it('does nothing the second time', async () => {
    const { leasehold } = await open(inProcess)
    expect(leasehold.close()).toBe(leasehold.close())
    await leasehold.close()
  })
})

describe('the store', () => {
  it('does not close a store object', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    await (await Leasehold.open(store, { clock })).close()
    await expect(store.grant({ holder: 'x', ttl: 1000 })).resolves.toBeDefined()
  })

  it('closes a store that was opened by its URL', async () => {
    const leasehold = await Leasehold.open('memory:')
    const lock = await leasehold.lock('k')
    await leasehold.close()
    await lock.release()
    await expect(leasehold.lock('k')).rejects.toMatchObject({ code: 'closed' })
  })

  it('that is closed under a client makes it lose what it holds, in time', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const leasehold = await Leasehold.open(store, { clock })
    const lock = await leasehold.lock('k', { ttl: '1s' })
    await store.close()
    await expect(leasehold.lock('other', { ttl: '1s' })).rejects.toMatchObject({ code: 'closed' })
    await clock.advance(2000)
    expect(lock.signal.reason).toMatchObject({ code: 'lost', reason: 'unreachable' })
    await leasehold.close()
  })
})
