import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Client } from '../../../src/client/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

/** More events than are kept: a view that missed them must read everything again. */
const MANY = 2500

function open() {
  const clock = new TestClock()
  const inner = memoryStore({ clock, limits: { events: 16 } })
  const store = new FaultyStore(inner, clock)
  const client = new Client(store, { clock, holder: 'viewer' })
  const grant = async (holder = 'someone') => {
    const granted = await inner.grant({ holder, ttl: Infinity })
    return granted.outcome === 'granted' ? granted.lease : ''
  }
  const flood = async () => {
    const lease = await grant()
    for (let i = 0; i < MANY / 2; i++) {
      const claimed = await inner.claim({ lease, claims: [{ key: 'flood' }] })
      const token = claimed.outcome === 'claimed' ? claimed.token : 0
      await inner.release({ lease, keys: ['flood'], token })
    }
  }
  return { clock, inner, store, client, grant, flood }
}

describe('a view', () => {
  it('shows earlier and later changes in order, with the holders', async () => {
    const { clock, inner, client, grant } = open()
    const lease = await grant('early')
    const first = await inner.claim({ lease, claims: [{ key: 'p/a', value: 'one' }] })
    const changes: string[][] = []
    const view = client.view('p/', (keys) => changes.push([...keys]))
    await clock.settle()
    await view.ready
    expect(view.places('p/a')).toMatchObject([{ holder: 'early', value: 'one' }])
    await inner.claim({ lease, claims: [{ key: 'p/a', value: 'two' }, { key: 'other' }] })
    await inner.claim({ lease, claims: [{ key: 'p/b' }] })
    await clock.settle()
    expect(view.places('p/a').map((place) => place.value)).toEqual(['one', 'two'])
    expect(view.holders('p/a').map((place) => place.value)).toEqual(['one'])
    expect([...view.keys()].sort()).toEqual(['p/a', 'p/b'])
    const token = first.outcome === 'claimed' ? first.token : 0
    await inner.update({ lease, key: 'p/a', token, value: 'uno' })
    await clock.settle()
    expect(view.places('p/a')[0]?.value).toBe('uno')
    await inner.revoke({ target: { lease } })
    await clock.settle()
    expect([...view.keys()]).toEqual([])
    expect(changes.flat().filter((key) => !key.startsWith('p/'))).toEqual([])
    view.close()
  })

  it('shows a queue that is longer than a read of its prefix', async () => {
    const { clock, inner, client, grant } = open()
    const lease = await grant()
    for (let i = 0; i < 40; i++) await inner.claim({ lease, claims: [{ key: 'p/a' }] })
    const view = client.view('p/')
    await clock.settle()
    expect(view.places('p/a')).toHaveLength(40)
  })

  it('shows changes during the first read once', async () => {
    const { clock, inner, store, client, grant } = open()
    const lease = await grant()
    for (let i = 0; i < 40; i++) await inner.claim({ lease, claims: [{ key: 'p/a' }] })
    // The page is read first, then its long queue: this claim comes in between.
    store.fault = () => ({ there: 100 })
    const view = client.view('p/')
    await clock.advance(150)
    await inner.claim({ lease, claims: [{ key: 'p/a' }] })
    await clock.advance(150)
    expect(view.places('p/a')).toHaveLength(41)
  })

  it('keeps its last state while the store is unreachable, and reports its age', async () => {
    const { clock, inner, store, client, grant } = open()
    const lease = await grant()
    await inner.claim({ lease, claims: [{ key: 'p/a' }] })
    const view = client.view('p/')
    await clock.advance(10_000)
    expect(view.age()).toBeLessThanOrEqual(2000)
    store.freeze()
    await clock.advance(60_000)
    expect(view.age()).toBeGreaterThanOrEqual(58_000)
    expect(view.places('p/a')).toHaveLength(1)
    await inner.claim({ lease, claims: [{ key: 'p/b' }] })
    store.thaw()
    await clock.advance(6000)
    expect(view.age()).toBeLessThanOrEqual(2000)
    expect(view.places('p/b')).toHaveLength(1)
  })

  it('waits for a store that is unreachable at the start', async () => {
    const { clock, store, client } = open()
    store.freeze()
    const view = client.view('p/')
    let ready = false
    view.ready.then(() => {
      ready = true
    })
    await clock.advance(60_000)
    expect(ready).toBe(false)
    store.thaw()
    await clock.advance(6000)
    expect(ready).toBe(true)
    expect(view.live).toBe(true)
  })

  it('catches up after its watch broke off, by the events or by reading everything again', async () => {
    for (const much of [false, true]) {
      const { clock, inner, store, client, grant, flood } = open()
      const lease = await grant()
      await inner.claim({ lease, claims: [{ key: 'p/gone' }] })
      const view = client.view('p/')
      await clock.settle()
      store.interrupt()
      await inner.revoke({ target: { key: 'p/gone' } })
      await inner.claim({ lease, claims: [{ key: 'p/new' }] })
      if (much) await flood()
      const reads = store.count('read')
      await clock.advance(1000)
      expect([...view.keys()]).toEqual(['p/new'])
      // It need not read anything again if the events are still kept.
      expect(store.count('read') > reads).toBe(much)
    }
  })

  it('ends with its client, and a wait for it with it', async () => {
    const { clock, store, client } = open()
    store.freeze()
    const view = client.view('p/')
    const ready = expect(view.ready).rejects.toThrowError(
      expect.objectContaining({ code: 'closed' }),
    )
    await client.close()
    await clock.settle()
    await ready
    expect(() => client.view('p/')).toThrowError(expect.objectContaining({ code: 'closed' }))
  })

  it('is refused for a prefix that cannot be', async () => {
    const { clock, client } = open()
    const view = client.view('\u0000')
    const ready = expect(view.ready).rejects.toThrowError(/control character/)
    await clock.settle()
    await ready
  })

  it('shows the same as a read, after any changes and interruptions', async () => {
    const step = fc.record({
      act: fc.constantFrom(
        'claim',
        'claim',
        'both',
        'release',
        'update',
        'revoke',
        'break',
        'rest',
      ),
      key: fc.constantFrom('p/a', 'p/b', 'p/c'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.boolean(), async (steps, floods) => {
        const { clock, inner, store, client, grant, flood } = open()
        const view = client.view('p/')
        let lease = await grant()
        for (const { act, key } of steps) {
          const { claims } = await inner.read({ key })
          const [first] = claims
          if (act === 'claim') await inner.claim({ lease, claims: [{ key }] })
          if (act === 'both') await inner.claim({ lease, claims: [{ key: 'p/a' }, { key: 'p/c' }] })
          if (act === 'release' && first) {
            await inner.release({ lease: first.lease, keys: [key], token: first.token })
          }
          if (act === 'update' && first) {
            await inner.update({ lease: first.lease, key, token: first.token, value: key + act })
          }
          if (act === 'revoke') {
            await inner.revoke({ target: { lease } })
            lease = await grant()
          }
          if (act === 'break') {
            store.interrupt()
            if (floods) await flood()
          }
          if (act === 'rest') await clock.advance(100)
        }
        await clock.advance(10_000)
        for (const key of ['p/a', 'p/b', 'p/c']) {
          const { claims } = await inner.read({ key })
          const plain = (list: readonly { token: number; value?: string | undefined }[]) =>
            list.map(({ token, value }) => `${token} ${value}`)
          expect(plain(view.places(key))).toEqual(plain(claims))
        }
        await client.close()
      }),
      { numRuns: 40 },
    )
  })
})
