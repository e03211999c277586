import { describe, expect, it } from 'vitest'
import { Client, type ClientOptions } from '../../../src/client/index.ts'
import { LeaseholdError } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

const random = { next: () => 1, id: () => 'id' }

function open(options: ClientOptions = {}, inProcess = false) {
  const clock = new TestClock()
  const store = new FaultyStore(memoryStore({ clock }), clock, inProcess)
  return { clock, store, client: new Client(store, { clock, random, ...options }) }
}

/** When a promise was rejected, and with which code. */
function failure(promise: Promise<unknown>, clock: TestClock) {
  const begin = clock.now()
  const seen: { code?: string; message?: string; at?: number } = {}
  promise.catch(({ code, message }) => {
    Object.assign(seen, { code, message, at: clock.now() - begin })
  })
  return seen
}

const silent = () => ({ lost: 'request' }) as const
const broken = () => ({ error: new LeaseholdError('unknown-outcome', 'broken') })

describe('the time limit of a call', () => {
  it('counts alone if the caller chose it: it ends neither sooner nor later', async () => {
    for (const fault of [silent, broken]) {
      const { clock, store, client } = open({ callTimeout: 1000 })
      store.fault = fault
      const read = failure(client.limitedTo(7000).store.read({ key: 'k' }), clock)
      const hold = failure(client.hold([{ key: 'k' }], { timeout: 7000 }), clock)
      await clock.advance(60_000)
      expect(read).toMatchObject({ code: 'timeout', at: 7000 })
      expect(hold).toMatchObject({ code: 'unknown-outcome', at: 7000 })
    }
  })

  it('names the last error of the store', async () => {
    const { clock, store, client } = open({ timeout: 400 })
    store.fault = broken
    const read = failure(client.store.read({ key: 'k' }), clock)
    await clock.advance(1000)
    expect(read.message).toBe(
      "the store did not answer the read within 400ms (the client's timeout). It was a read and changed nothing. The last error: broken.",
    )
  })

  it('is that of the first answer: the wait in the queue is not limited by it', async () => {
    const { clock, client } = open({ timeout: 500 })
    const held = await client.hold([{ key: 'k' }], { ttl: '1h' })
    const endless = client.hold([{ key: 'k' }], { ttl: '1h' })
    const limited = failure(client.hold([{ key: 'k' }], { ttl: '1h', wait: '9s' }), clock)
    await clock.advance(8999)
    expect(limited).toEqual({})
    await clock.advance(1)
    expect(limited).toMatchObject({ code: 'timeout', at: 9000 })
    await held.release()
    expect((await endless).held).toBe(true)
  })

  it('is also that of those that wait for the lease of another', async () => {
    const { clock, store, client } = open()
    store.fault = silent
    const first = failure(client.hold([{ key: 'a' }]), clock)
    const second = failure(client.tryHold([{ key: 'b' }], { timeout: 300 }), clock)
    await clock.advance(300)
    expect(second).toMatchObject({ code: 'unknown-outcome', at: 300 })
    await clock.advance(4700)
    expect(first).toMatchObject({ code: 'unknown-outcome', at: 5000 })
  })

  it('is respected by a store in this process too, which has none by default', async () => {
    const { clock, store, client } = open({}, true)
    store.fault = () => ({ back: 10_000 })
    const limited = failure(client.hold([{ key: 'a' }], { timeout: 300 }), clock)
    const read = failure(client.limitedTo(300).store.read({ key: 'a' }), clock)
    const unlimited = client.hold([{ key: 'b' }], { ttl: '1h' })
    await clock.advance(300)
    expect(limited).toMatchObject({ code: 'unknown-outcome', at: 300 })
    expect(read).toMatchObject({ code: 'timeout', at: 300 })
    await clock.advance(60_000)
    expect((await unlimited).held).toBe(true)
    expect(store.count('read')).toBe(1)
  })

  it('is that of the store also without a wait, whose own time would be over at once', async () => {
    const { clock, store, client } = open()
    store.fault = silent
    const failed = failure(client.hold([{ key: 'k' }], { wait: 0, timeout: 300 }), clock)
    await clock.advance(300)
    expect(failed).toMatchObject({ code: 'unknown-outcome', at: 300 })
    expect(failed.message).toContain('within 300ms')
  })

  it('is refused by a promise, and the hold stays, if its name is misspelt', async () => {
    const { client } = open()
    const hold = await client.hold([{ key: 'k' }])
    for (const call of [hold.renew, hold.release]) {
      const refused = call.call(hold, { timout: 1 } as never)
      await expect(refused).rejects.toThrow(/did you mean "timeout"/)
    }
    expect(hold.held).toBe(true)
  })

  it.each([0, -1, 'infinite', 'soon'])('is refused if it is %j', async (timeout) => {
    const { client } = open()
    expect(() => new Client(memoryStore(), { timeout: timeout as '1s' })).toThrow(/timeout is/)
    expect(() => client.limitedTo(timeout as '1s')).toThrow(/timeout is/)
    await expect(client.hold([{ key: 'k' }], { timeout: timeout as '1s' })).rejects.toThrow(
      /timeout is/,
    )
  })
})
