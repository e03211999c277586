import { describe, expect, it } from 'vitest'
import { Client } from '../../../src/client/index.ts'
import { LeaseholdError } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

function open(inProcess = false) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = new FaultyStore(inner, clock, inProcess)
  const client = new Client(store, { clock, holder: 'me', callTimeout: 1000 })
  const events: [string, unknown][] = []
  for (const name of ['leased', 'acquired', 'released', 'lost'] as const) {
    client.on(name, (event) => events.push([name, event]))
  }
  const valueOn = async (key: string) => (await inner.read({ key })).claims[0]?.value
  const claims = async (key: string) => (await inner.read({ key })).count
  return { clock, inner, store, client, events, valueOn, claims }
}

const caught = (promise: Promise<unknown>) => promise.catch((error: unknown) => error)

describe.each([true, false])('a hold (a store in the process: %s)', (inProcess) => {
  it('is reported when it is taken, with the time that took, and when it is released', async () => {
    const { clock, inner, client, events } = open(inProcess)
    const rival = await inner.grant({ holder: 'x', ttl: Infinity, claims: [{ key: 'k' }] })
    const waiting = client.hold([{ key: 'k' }, { key: 'l' }], { ttl: '10s' })
    await clock.advance(2000)
    if (rival.outcome === 'granted') await inner.revoke({ target: { lease: rival.lease } })
    const hold = await waiting
    await hold.release()
    const { lease, claimToken: token } = hold
    const event = { lease, keys: ['k', 'l'], token }
    expect(events).toEqual([
      ['leased', { lease, ttl: 10_000 }],
      ['acquired', { ...event, waited: 2000 }],
      ['released', event],
    ])
    const again = await client.hold([{ key: 'k' }], { ttl: '10s' })
    expect(events.at(-1)).toEqual([
      'acquired',
      { lease, keys: ['k'], token: again.token, waited: 0 },
    ])
  })

  it('reports the whole wait to a listener that is added during the wait', async () => {
    const clock = new TestClock()
    const inner = memoryStore({ clock })
    const client = new Client(new FaultyStore(inner, clock, inProcess), { clock })
    const rival = await inner.grant({ holder: 'x', ttl: Infinity, claims: [{ key: 'k' }] })
    const waiting = client.hold([{ key: 'k' }], { ttl: '10s' })
    await clock.advance(1500)
    const waits: number[] = []
    client.on('acquired', ({ waited }) => waits.push(waited))
    await clock.advance(500)
    if (rival.outcome === 'granted') await inner.revoke({ target: { lease: rival.lease } })
    await waiting
    expect(waits).toEqual([2000])
  })

  it('changes its values in the order of the calls, each on its key', async () => {
    const { client, valueOn } = open(inProcess)
    const hold = await client.hold([{ key: 'a', value: 'one' }, { key: 'b' }])
    await Promise.all([hold.update('two'), hold.update('three', 'b'), hold.update('four')])
    expect([await valueOn('a'), await valueOn('b')]).toEqual(['four', 'three'])
    await hold.update(undefined)
    expect(await valueOn('a')).toBeUndefined()
  })

  it('can change its values after the store has refused one', async () => {
    const { client, valueOn } = open(inProcess)
    const hold = await client.hold([{ key: 'a' }])
    const long = 'x'.repeat(70_000)
    const outcomes = await Promise.allSettled([hold.update(long), hold.update('short')])
    expect(outcomes).toMatchObject([
      { status: 'rejected', reason: { code: 'limit-exceeded' } },
      { status: 'fulfilled' },
    ])
    expect(await valueOn('a')).toBe('short')
  })

  it('refuses changes and renewals after it was released or lost', async () => {
    const { clock, inner, client } = open(inProcess)
    const released = await client.hold([{ key: 'a' }])
    const lost = await client.hold([{ key: 'b' }])
    await released.release()
    await inner.revoke({ target: { key: 'b' }, by: 'ops' })
    await clock.settle()
    await expect(released.update('x')).rejects.toMatchObject({ code: 'claim-not-found' })
    await expect(released.renew()).rejects.toMatchObject({ code: 'claim-not-found' })
    await expect(lost.update('x')).rejects.toMatchObject({ code: 'lost', by: 'ops' })
    await expect(lost.renew()).rejects.toMatchObject({ code: 'lost', by: 'ops' })
    expect(() => lost.assertHeld()).toThrowError(expect.objectContaining({ code: 'lost' }))
  })

  it('has no time left after its release, although its lease lives', async () => {
    const { client } = open(inProcess)
    await client.hold([{ key: 'other' }])
    const hold = await client.hold([{ key: 'k' }])
    expect(hold.remaining()).toBeGreaterThan(0)
    await hold.release()
    expect(hold.remaining()).toBe(0)
    const token = hold.claimToken
    expect(() => hold.token).toThrowError(`"k" (token ${token}) was released`)
  })

  it('says that it was lost if the store refuses a change because of it', async () => {
    const { clock, inner, store, client } = open(inProcess)
    const hold = await client.hold([{ key: 'k' }])
    store.fault = (call) => (call === 'update' ? { there: 100 } : undefined)
    const failed = caught(hold.update('x'))
    await inner.revoke({ target: { key: 'k' }, by: 'ops' })
    await clock.advance(200)
    expect(await failed).toMatchObject({ code: 'lost', reason: 'revoked', by: 'ops' })
  })

  it('is released without a call to the store if it was lost before', async () => {
    const { clock, inner, store, client, events } = open(inProcess)
    const hold = await client.hold([{ key: 'k' }])
    await inner.revoke({ target: { lease: hold.lease } })
    await clock.settle()
    await hold.release()
    await hold[Symbol.asyncDispose]()
    expect(store.count('release')).toBe(0)
    expect(events.map(([name]) => name)).toEqual(['leased', 'acquired', 'lost'])
    expect(hold.state).toBe('lost')
  })

  it('is not released at the store if it was taken by force, although its lease lives', async () => {
    const { clock, inner, store, client, events } = open(inProcess)
    await client.hold([{ key: 'other' }])
    const hold = await client.hold([{ key: 'k' }])
    await inner.revoke({ target: { key: 'k' } })
    await clock.settle()
    await hold.release()
    expect([hold.state, store.count('release')]).toEqual(['lost', 0])
    expect(events.map(([name]) => name)).not.toContain('released')
  })

  it('is lost together with all others on its lease, whichever is checked first', async () => {
    const { clock, inner, store, client } = open(inProcess)
    const [one, other] = [await client.hold([{ key: 'a' }]), await client.hold([{ key: 'b' }])]
    const seen: unknown[] = []
    one.signal.addEventListener('abort', () => {
      seen.push(other.state, other.signal.reason)
      void other.release()
    })
    await inner.revoke({ target: { lease: one.lease }, by: 'ops' })
    await clock.settle()
    const lost = { code: 'lost', reason: 'revoked', by: 'ops' }
    expect(seen).toMatchObject(['lost', { ...lost, message: expect.stringContaining('"b"') }])
    expect(other.signal.reason).toBe(seen[1])
    expect([other.state, store.count('release')]).toEqual(['lost', 0])
  })

  it('is released once, and later releases wait for the same answer', async () => {
    const { clock, store, client } = open(inProcess)
    const hold = await client.hold([{ key: 'k' }])
    await clock.settle()
    expect(hold.release()).toBe(hold.release())
    await hold.release()
    expect(store.count('release')).toBe(1)
  })

  it('that is taken by force is not released, and says who took it', async () => {
    const { clock, inner, store, client } = open(inProcess)
    const hold = await client.hold([{ key: 'k' }])
    await clock.settle()
    await inner.revoke({ target: { key: 'k' }, by: 'ops' })
    await clock.advance(100)
    expect(hold.signal.reason.message).toContain('is held no more: it was revoked by "ops"')
    expect(store.count('release')).toBe(0)
  })

  it('has one signal, which is aborted with its loss', async () => {
    const { clock, inner, client } = open(inProcess)
    const hold = await client.hold([{ key: 'k' }])
    const { signal } = hold
    expect(hold.signal).toBe(signal)
    expect(signal.aborted).toBe(false)
    await inner.revoke({ target: { lease: hold.lease }, by: 'ops', why: 'drain' })
    await clock.settle()
    expect(hold.signal).toBe(signal)
    expect(signal.reason).toMatchObject({ code: 'lost', reason: 'revoked', by: 'ops' })
  })
})

it('a change without an answer is unknown, even if the lease has lapsed meanwhile', async () => {
  const { clock, store, client } = open()
  const hold = await client.hold([{ key: 'k' }], { ttl: '2s', grace: '1m' })
  store.freeze()
  const failed = caught(hold.update('x'))
  await clock.advance(5000)
  expect(hold.state).toBe('lapsed')
  expect(await failed).toMatchObject({ code: 'unknown-outcome' })
})

describe('a release', () => {
  it('that nobody awaits may fail without notice', async () => {
    const unseen: unknown[] = []
    const note = (error: unknown) => unseen.push(error)
    process.on('unhandledRejection', note)
    for (const inProcess of [true, false]) {
      const { clock, store, client } = open(inProcess)
      const hold = await client.hold([{ key: 'k' }], { ttl: '1h' })
      const error = new LeaseholdError('storage-full', 'no space')
      store.fault = (call) => (call === 'release' ? { error } : undefined)
      void hold.release()
      await clock.advance(1000)
      expect(store.count('release')).toBeGreaterThan(2)
    }
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', note)
    expect(unseen).toEqual([])
  })

  it('without an answer fails if it is awaited, but not at the end of a block', async () => {
    const { clock, store, client, claims } = open()
    const [one, other] = [await client.hold([{ key: 'a' }]), await client.hold([{ key: 'b' }])]
    await clock.settle()
    store.fault = (call) => (call === 'release' ? { lost: 'request' } : undefined)
    const failed = caught(one.release())
    const disposed = Promise.resolve(other[Symbol.asyncDispose]())
    await clock.advance(5000)
    expect(await failed).toMatchObject({ code: 'unknown-outcome' })
    await disposed
    store.fault = () => undefined
    await clock.advance(5000)
    expect([await claims('a'), await claims('b')]).toEqual([0, 0])
  })

  it('is done if the claim or the lease is gone already', async () => {
    const { clock, inner, store, client } = open()
    const [one, other] = [
      await client.hold([{ key: 'a' }]),
      await client.hold([{ key: 'b' }], { labels: { a: 'b' } }),
    ]
    await clock.settle()
    // The client gets no notification.
    store.interrupt()
    await inner.revoke({ target: { key: 'a' } })
    await inner.revoke({ target: { lease: other.lease } })
    await one.release()
    await other.release()
    expect([one.state, other.state]).toEqual(['released', 'released'])
  })

  it('that the store refuses is tried again, unless the store was closed', async () => {
    for (const [code, sends] of [
      ['storage-full', 2],
      ['closed', 1],
    ] as const) {
      for (const inProcess of [true, false]) {
        const { clock, store, client } = open(inProcess)
        await client.hold([{ key: 'other' }])
        const hold = await client.hold([{ key: 'k' }])
        await clock.settle()
        let refusals = 1
        const error = new LeaseholdError(code, 'no')
        store.fault = (call) => (call === 'release' && refusals-- > 0 ? { error } : undefined)
        const outcome = hold.release().then(
          () => 'released',
          (thrown) => thrown.code,
        )
        await clock.advance(1000)
        expect(await outcome).toBe(code === 'closed' ? 'closed' : 'released')
        expect(store.count('release')).toBe(sends)
      }
    }
  })
})
