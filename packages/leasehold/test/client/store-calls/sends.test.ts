import { describe, expect, it } from 'vitest'
import { Client, type Hold } from '../../../src/client/index.ts'
import { LeaseholdError, type LeaseStore } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

/** With a random number of 1 every pause has its maximum: 50 ms, 100 ms, 200 ms and so on. */
const random = { next: () => 1, id: () => 'id' }

function open(inProcess = false) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = new FaultyStore(inner, clock, inProcess)
  const client = new Client(store, { clock, random, jitter: 0, callTimeout: 1000 })
  const start = clock.now()
  /** When calls of a name were sent, in milliseconds after the start. */
  const sent = (name: 'grant' | 'release' | 'read' | 'claim') => {
    const times: number[] = []
    const fault = store.fault
    store.fault = (call) => {
      if (call === name) times.push(clock.now() - start)
      return fault(call)
    }
    return times
  }
  return { clock, inner, store, client, sent }
}

/** The state of a promise, and since when. */
function watched(promise: Promise<unknown>, clock: TestClock) {
  const start = clock.now()
  const outcome: { code?: string; value?: unknown; at?: number } = {}
  promise.then(
    (value) => Object.assign(outcome, { value, at: clock.now() - start }),
    ({ code }) => Object.assign(outcome, { code, at: clock.now() - start }),
  )
  return outcome
}

const BROKEN = new LeaseholdError('unknown-outcome', 'broken')

describe('a call that fails without a known outcome', () => {
  it('is sent again after pauses that double, and fails after three', async () => {
    const { clock, store, client, sent } = open()
    store.fault = () => ({ error: BROKEN })
    const times = sent('read')
    const outcome = watched(client.store.read({ key: 'k' }), clock)
    await clock.advance(149)
    expect(outcome).toEqual({})
    await clock.advance(1)
    expect(times).toEqual([0, 50, 150])
    expect(outcome).toEqual({ code: 'timeout', at: 150 })
    await clock.advance(600_000)
    expect(times).toHaveLength(3)
  })

  it('is sent again, even if it revokes a lease that nobody needs any more', async () => {
    const { clock, inner, store, client } = open()
    const hold = await client.hold([{ key: 'k' }], { labels: { a: 'b' } })
    let faults = 1
    store.fault = (call) => (call === 'revoke' && faults-- > 0 ? { error: BROKEN } : undefined)
    await hold.release()
    await clock.advance(50)
    expect((await inner.read({ leases: true })).leases).toEqual([])
    expect(store.count('revoke')).toBe(2)
  })

  it('is answered by any of its sends', async () => {
    const { clock, store, client, sent } = open()
    let faults = 2
    store.fault = () => (faults-- > 0 ? { error: BROKEN } : undefined)
    const times = sent('read')
    const outcome = watched(client.store.read({ key: 'k' }), clock)
    await clock.advance(1000)
    expect(outcome).toMatchObject({ at: 150, value: { count: 0 } })
    expect(times).toEqual([0, 50, 150])
  })

  it('is sent again after a timeout, and accepts a late answer', async () => {
    const { clock, store, client, sent } = open()
    let calls = 0
    store.fault = () => (++calls === 1 ? { back: 1100 } : { lost: 'request' })
    const times = sent('read')
    const outcome = watched(client.store.read({ key: 'k' }), clock)
    await clock.advance(1050)
    expect(times).toEqual([0, 1050])
    await clock.advance(50)
    expect(outcome).toMatchObject({ at: 1100, value: { count: 0 } })
    await clock.advance(60_000)
    expect(times).toEqual([0, 1050])
  })

  it('is not sent sooner because an earlier send fails late', async () => {
    const { clock, store, client, sent } = open()
    const read = store.read.bind(store)
    const failLater = () =>
      new Promise<never>((_, reject) => clock.timer(clock.now() + 1100, () => reject(BROKEN)))
    let calls = 0
    store.read = ((query) => (++calls === 1 ? failLater() : read(query))) as LeaseStore['read']
    store.fault = () => ({ there: 500 })
    const times = sent('read')
    const outcome = watched(client.store.read({ key: 'k' }), clock)
    await clock.advance(1549)
    expect(outcome).toEqual({})
    await clock.advance(1)
    expect(outcome).toMatchObject({ at: 1550, value: { count: 0 } })
    expect(times).toEqual([1050])
  })

  it('is not sent again if the store is in this process: it has no request id', async () => {
    const { clock, store, client } = open(true)
    store.fault = (call) => (call === 'claim' ? { error: BROKEN } : undefined)
    await client.hold([{ key: 'a' }])
    const outcome = watched(client.hold([{ key: 'b' }]), clock)
    await clock.advance(10_000)
    expect(outcome).toMatchObject({ code: 'unknown-outcome', at: 0 })
    expect(store.count('claim')).toBe(1)
    expect(store.requests).toEqual([undefined, undefined])
  })

  it('is not sent again either if it waited for its lease', async () => {
    const { clock, store, client } = open(true)
    store.fault = (call) => (call === 'claim' ? { error: BROKEN } : { back: 100 })
    const first = client.hold([{ key: 'a' }])
    const outcome = watched(client.hold([{ key: 'b' }]), clock)
    await clock.advance(10_000)
    expect((await first).held).toBe(true)
    expect(outcome).toEqual({ code: 'unknown-outcome', at: 100 })
    expect(store.count('claim')).toBe(1)
  })

  it('is one of the store, if it throws something else', async () => {
    const { clock, store, client } = open(true)
    const errors = [new Error('no route'), 'no route']
    for (const thrown of errors) {
      store.grant = () => {
        throw thrown
      }
      const error = await client.hold([{ key: 'a' }]).catch((caught) => caught)
      expect(error).toMatchObject({ code: 'unknown-outcome', cause: thrown })
      expect(error.message).toContain('no route')
      await clock.settle()
    }
    const other = open(true)
    await other.client.hold([{ key: 'a' }])
    other.store.claim = () => {
      throw errors[0]
    }
    const error = await other.client.hold([{ key: 'b' }]).catch((caught) => caught)
    expect(error).toMatchObject({ code: 'unknown-outcome', cause: errors[0] })
  })
})

describe('a release that the store does not answer', () => {
  async function failing(hold: (client: Client) => Promise<Hold>) {
    const opened = open()
    const held = await hold(opened.client)
    await opened.clock.settle()
    opened.store.fault = (call) => (call === 'release' ? { error: BROKEN } : undefined)
    const times = opened.sent('release')
    const outcome = watched(held.release(), opened.clock)
    return { ...opened, times, outcome, held }
  }

  it('is sent 16 times at most, with pauses of at most five seconds', async () => {
    const { clock, times, outcome } = await failing((client) =>
      client.hold([{ key: 'k' }], { ttl: '1h' }),
    )
    await clock.advance(600_000)
    expect(outcome).toEqual({ code: 'unknown-outcome', at: 150 })
    const rests = times.slice(1).map((time, i) => time - times[i]!)
    expect(rests).toEqual([50, 100, 200, 400, 800, 1600, 3200, ...Array(8).fill(5000)])
  })

  it('continues after its caller has stopped waiting', async () => {
    const { clock, inner, store, client } = open()
    await inner.grant({ holder: 'x', ttl: Infinity, claims: [{ key: 'k' }] })
    await client.hold([{ key: 'other' }])
    const failed = watched(client.hold([{ key: 'k' }], { wait: 100 }), clock)
    await clock.advance(50)
    store.fault = (call) => (call === 'release' ? { error: BROKEN } : undefined)
    await clock.advance(1000)
    expect(failed.code).toBe('timeout')
    expect(store.count('release')).toBeGreaterThan(3)
    store.fault = () => undefined
    await clock.advance(5000)
    expect((await inner.read({ key: 'k' })).count).toBe(1)
  })

  it('is not sent any more when the lease has ended', async () => {
    const { clock, inner, times, held } = await failing((client) =>
      client.hold([{ key: 'k' }], { ttl: '1h' }),
    )
    await clock.advance(200)
    const sent = times.length
    await inner.revoke({ target: { lease: held.lease } })
    await clock.advance(60_000)
    expect(times).toHaveLength(sent)
  })

  it('is not sent any more when the client is closed, which ends the lease', async () => {
    const { clock, inner, client, times } = await failing((client) =>
      client.hold([{ key: 'k' }], { ttl: '1h' }),
    )
    await clock.advance(200)
    const sent = times.length
    await client.close()
    await clock.advance(60_000)
    expect(times).toHaveLength(sent)
    expect((await inner.read({ leases: true })).leases).toEqual([])
  })
})

describe('closing', () => {
  it('immediately fails a call that waits for its next send', async () => {
    const { clock, store, client } = open()
    store.fault = (call) => (call === 'read' ? { error: BROKEN } : undefined)
    const outcome = watched(client.store.read({ key: 'k' }), clock)
    await clock.advance(10)
    await client.close()
    await clock.settle()
    expect(outcome).toEqual({ code: 'closed', at: 10 })
    await clock.advance(1000)
    expect(store.count('read')).toBe(1)
  })

  it('immediately fails a call without an answer', async () => {
    const { clock, store, client } = open()
    store.fault = (call) => (call === 'read' ? { lost: 'request' } : undefined)
    const outcome = watched(client.store.read({ key: 'k' }), clock)
    await clock.advance(10)
    await client.close()
    await clock.settle()
    expect(outcome).toEqual({ code: 'closed', at: 10 })
    await clock.advance(10_000)
    expect(store.count('read')).toBe(1)
  })

  it('waits for a lease that is being granted, and ends it', async () => {
    const { clock, inner, store, client } = open()
    store.fault = (call) => (call === 'grant' ? { back: 500 } : undefined)
    const held = watched(client.hold([{ key: 'k' }]), clock)
    await clock.advance(100)
    const closed = watched(client.close(), clock)
    await clock.advance(399)
    expect([held.code, closed.at]).toEqual(['closed', undefined])
    await clock.advance(1)
    expect(closed.at).toBe(400)
    expect((await inner.read({ leases: true })).leases).toEqual([])
  })
})

describe('request ids', () => {
  it('are different for each call, and name the client', async () => {
    const { store, client } = open()
    await client.hold([{ key: 'a' }])
    await client.hold([{ key: 'b' }])
    await client.store.grant({ holder: 'me', ttl: 1000 })
    expect(store.requests).toEqual(['id-1', 'id-2', 'id-3'])
  })

  it('are those of the caller, if it gives one', async () => {
    const { store, client } = open()
    await client.store.grant({ holder: 'me', ttl: 1000, request: 'mine' })
    expect(store.requests).toEqual(['mine'])
  })
})
