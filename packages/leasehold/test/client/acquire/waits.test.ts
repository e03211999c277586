import { describe, expect, it } from 'vitest'
import { Leasehold, type Lock } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

async function open(inProcess = true) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = new FaultyStore(inner, clock, inProcess)
  const leasehold = await Leasehold.open(store, { clock, holder: 'me' })
  const rival = await Leasehold.open(inner, { clock, holder: 'rival' })
  const claims = async (key: string) => (await inner.read({ key })).count
  return { clock, inner, store, leasehold, rival, claims }
}

describe.each([
  ['in this process', true],
  ['elsewhere', false],
])('waiting in a queue on a store %s', (_name, inProcess) => {
  it('costs only heartbeats: fifty waiters make no calls, and hold in order', async () => {
    const { clock, store, leasehold, rival } = await open(inProcess)
    const held = await rival.lock('k')
    const order: number[] = []
    const waits = Array.from({ length: 50 }, (_, i) =>
      leasehold.withLock('k', () => void order.push(i)),
    )
    await clock.settle()
    const before = store.calls.length
    await clock.advance(60_000)
    const asked = store.calls.slice(before)
    expect(asked.filter((call) => call !== 'renew')).toEqual([])
    expect(asked.length).toBeLessThanOrEqual(6)
    await held.release()
    await clock.advance(0)
    await Promise.all(waits)
    expect(order).toEqual(Array.from({ length: 50 }, (_, i) => i))
  })

  it('does not wait for 0 ms, but gives the answer its time', async () => {
    const { clock, store, leasehold } = await open(inProcess)
    await leasehold.lock('other')
    store.fault = (call) => (call === 'claim' ? { back: 100 } : undefined)
    const lock = leasehold.lock('k', { wait: 0 })
    await clock.advance(200)
    expect((await lock).held).toBe(true)
  })

  it('is first in, first out, with rising tokens', async () => {
    const { leasehold, rival } = await open(inProcess)
    const order: string[] = []
    const tokens: number[] = []
    const work = (name: string, from: Leasehold) =>
      from.withLock('k', async (lock) => {
        order.push(name)
        tokens.push(lock.token)
      })
    const first = await leasehold.lock('k')
    const all = []
    for (const name of ['a', 'b', 'c', 'd']) {
      all.push(work(name, name < 'c' ? leasehold : rival))
      await new Promise(setImmediate)
    }
    await first.release()
    await Promise.all(all)
    expect(order).toEqual(['a', 'b', 'c', 'd'])
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b))
  })

  it('ends with timeout, names the key, the holder and how long, and leaves no claim', async () => {
    const { clock, leasehold, rival, claims } = await open(inProcess)
    await rival.lock('k', { value: 'busy' })
    const start = clock.now()
    let failedAt = 0
    const failed = leasehold.lock('k', { wait: '3s' }).catch((error) => {
      failedAt = clock.now()
      return error
    })
    await clock.advance(2999)
    expect(await claims('k')).toBe(2)
    await clock.advance(10)
    const error = await failed
    expect(failedAt - start).toBe(3000)
    expect(error).toMatchObject({ code: 'timeout' })
    expect(error.message).toMatch(/waited 3s for "k".*"rival"/)
    expect(await claims('k')).toBe(1)
  })

  it('ends with aborted, and leaves no claim', async () => {
    const { clock, leasehold, rival, claims } = await open(inProcess)
    await rival.lock('k')
    const controller = new AbortController()
    const failed = leasehold.lock('k', { signal: controller.signal }).catch((error) => error)
    await clock.settle()
    controller.abort(new Error('enough'))
    const error = await failed
    expect(error).toMatchObject({ code: 'aborted', cause: { message: 'enough' } })
    await clock.settle()
    expect(await claims('k')).toBe(1)
  })

  it('does not start with an aborted signal', async () => {
    const { store, leasehold } = await open(inProcess)
    await expect(leasehold.lock('k', { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'aborted',
    })
    expect(store.calls).toEqual([])
  })

  it('is not begun at all with a wait of 0', async () => {
    const { clock, leasehold, rival, claims } = await open(inProcess)
    const lock = await rival.lock('k')
    await expect(leasehold.lock('k', { wait: 0 })).rejects.toMatchObject({ code: 'timeout' })
    expect(await claims('k')).toBe(1)
    await lock.release()
    await clock.settle()
    expect((await leasehold.lock('k', { wait: 0 })).held).toBe(true)
  })

  it('fails with the reason when its own lease ends', async () => {
    const { clock, inner, leasehold, rival } = await open(inProcess)
    await rival.lock('k')
    const mine = await leasehold.lock('other')
    const failed = leasehold.lock('k').catch((error) => error)
    await clock.settle()
    await inner.revoke({ target: { lease: mine.lease }, by: 'ops', why: 'test' })
    await clock.settle()
    expect(await failed).toMatchObject({ code: 'lost', reason: 'revoked', by: 'ops', why: 'test' })
  })

  it('fails with the reason when its claim is taken', async () => {
    const { clock, inner, leasehold, rival } = await open(inProcess)
    await rival.lock('k')
    const failed = leasehold.lock('k').catch((error) => error)
    await clock.settle()
    const { claims } = await inner.read({ key: 'k' })
    await inner.revoke({ target: { key: 'k', token: claims[1]!.token }, by: 'ops' })
    await clock.settle()
    expect(await failed).toMatchObject({ code: 'lost', reason: 'revoked', by: 'ops' })
  })

  it('lasts as long as it takes without a limit', async () => {
    const { clock, leasehold, rival } = await open(inProcess)
    const first = await rival.lock('k')
    const second = leasehold.lock('k')
    await clock.advance(3600_000)
    await first.release()
    await clock.settle()
    expect((await second).held).toBe(true)
  })

  it('continues while the lease has lapsed, although the answer says that it holds', async () => {
    const { clock, store, leasehold } = await open(inProcess)
    const options = { ttl: '1s', grace: '30s' } as const
    await leasehold.lock('other', options)
    await clock.settle()
    store.fault = (call) => {
      if (call === 'renew') return { lost: 'request' }
      return call === 'claim' ? { back: 2000 } : undefined
    }
    let held: Lock | undefined
    void leasehold.lock('k', options).then((lock) => {
      held = lock
    })
    await clock.advance(3000)
    expect(held).toBeUndefined()
    store.fault = () => undefined
    await clock.advance(10_000)
    expect(held?.held).toBe(true)
  })

  it('lets shared locks hold together, and an exclusive one alone', async () => {
    const { clock, leasehold } = await open(inProcess)
    const readers = await Promise.all([
      leasehold.lock('k', { mode: 'shared' }),
      leasehold.lock('k', { mode: 'shared' }),
    ])
    let writer: Lock | undefined
    void leasehold.lock('k').then((lock) => {
      writer = lock
    })
    await clock.settle()
    expect(writer).toBeUndefined()
    for (const reader of readers) await reader.release()
    await clock.settle()
    expect(writer?.held).toBe(true)
  })
})

describe('a notice and an answer that pass each other', () => {
  it('are combined: the turn is notified before the claim is answered', async () => {
    const { clock, store, leasehold, rival } = await open(false)
    const first = await rival.lock('k')
    await leasehold.lock('other')
    store.fault = (call) => (call === 'claim' ? { back: 100 } : undefined)
    const second = leasehold.lock('k')
    await clock.settle()
    await first.release()
    await clock.advance(200)
    expect((await second).held).toBe(true)
  })

  it('are combined: the claim is taken before it is answered', async () => {
    const { clock, inner, store, leasehold } = await open(false)
    await leasehold.lock('other')
    store.fault = (call) => (call === 'claim' ? { back: 100 } : undefined)
    const failed = leasehold.lock('k').catch((error) => error)
    await clock.settle()
    await inner.revoke({ target: { key: 'k' }, by: 'ops' })
    await clock.advance(200)
    expect(await failed).toMatchObject({ code: 'lost', by: 'ops' })
  })

  it('are combined: the turn came while the watch was interrupted', async () => {
    const { clock, store, leasehold, rival } = await open(false)
    const first = await rival.lock('k')
    const second = leasehold.lock('k')
    await clock.settle()
    store.interrupt()
    await first.release()
    await clock.advance(500)
    expect((await second).held).toBe(true)
  })
})

describe('a watch of a lease that breaks again and again', () => {
  it('is opened again soon, because it worked in between', async () => {
    const { clock, store, leasehold, rival } = await open(false)
    const first = await rival.lock('k')
    const second = leasehold.lock('k')
    await clock.settle()
    for (let breaks = 0; breaks < 10; breaks++) {
      store.interrupt()
      await clock.advance(100)
    }
    store.interrupt()
    await first.release()
    await clock.advance(100)
    const held = await Promise.race([second, clock.settle().then(() => undefined)])
    expect(held?.held).toBe(true)
  })
})

describe('a lock on several keys of which one is taken by force', () => {
  it.each([true, false])('releases the others (in process: %s)', async (inProcess) => {
    const { clock, inner, leasehold, claims } = await open(inProcess)
    const other = await leasehold.lock('other')
    const lock = await leasehold.lock(['a', 'b', 'c'])
    // They share a lease, which lives on.
    expect(lock.lease).toBe(other.lease)
    await inner.revoke({ target: { key: 'b' }, by: 'ops' })
    await clock.advance(100)
    expect(lock.state).toBe('lost')
    expect([await claims('a'), await claims('b'), await claims('c')]).toEqual([0, 0, 0])
    expect(other.held).toBe(true)
  })

  it('gives them back while it waits', async () => {
    const { clock, inner, leasehold, rival, claims } = await open(false)
    await rival.lock('a')
    const waiting = leasehold.lock(['a', 'b']).catch((error) => error)
    await clock.settle()
    const { claims: all } = await inner.read({ key: 'a' })
    await inner.revoke({ target: { key: 'a', token: all[1]!.token }, by: 'ops' })
    await clock.advance(100)
    expect(await waiting).toMatchObject({ code: 'lost', by: 'ops' })
    expect(await claims('b')).toBe(0)
  })
})
