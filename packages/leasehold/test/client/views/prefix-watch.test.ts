import { describe, expect, it } from 'vitest'
import { Client, type Listener } from '../../../src/client/index.ts'
import { type Event, LeaseholdError, type Observer, type Watch } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

/** With a random number of 1 every pause has its maximum: 50 ms, 100 ms, 200 ms and so on. */
const random = { next: () => 1, id: () => 'id' }

async function open(inProcess = false) {
  const clock = new TestClock()
  const inner = memoryStore({ clock, limits: { events: 16 } })
  const store = new FaultyStore(inner, clock, inProcess)
  const client = new Client(store, { clock, random, callTimeout: 1000 })
  const granted = await inner.grant({ holder: 'someone', ttl: Infinity })
  const lease = granted.outcome === 'granted' ? granted.lease : ''
  const claim = (key: string) => inner.claim({ lease, claims: [{ key }] })
  /** When watches were opened, in milliseconds after the start. */
  const opened: number[] = []
  const start = clock.now()
  const watch = store.watch.bind(store)
  store.watch = (target, observer) => {
    if ('prefix' in target) opened.push(clock.now() - start)
    return watch(target, observer)
  }
  return { clock, inner, store, client, claim, opened }
}

/** Records the keys of new claims. */
function listening(extra: Partial<Listener> = {}) {
  const calls: string[] = []
  const listener: Listener = {
    events: (events: readonly Event[]) =>
      calls.push(...events.filter(({ type }) => type === 'claimed').map(({ key }) => key)),
    missed: () => calls.push('missed'),
    closed: () => calls.push('closed'),
    ...extra,
  }
  return { calls, listener }
}

const FORBIDDEN = new LeaseholdError('forbidden', 'no right to watch')

/** Watches fail with these errors, one after the other, and then work. */
function failingWatch(store: FaultyStore, errors: LeaseholdError[]): void {
  const watch = store.watch.bind(store)
  store.watch = (target, observer) => {
    const opened = watch(target, observer)
    const error = errors.shift()
    if (error === undefined) return opened
    opened.close()
    throw error
  }
}

describe('following a prefix', () => {
  it('reports every event under it from the moment it is ready, in order and once', async () => {
    const { clock, client, claim } = await open()
    await claim('p/before')
    const { calls, listener } = listening()
    const following = client.watchPrefix('p/', listener)
    expect(following.live).toBe(false)
    await following.ready
    expect(following.live).toBe(true)
    for (const key of ['p/a', 'other', 'p/b', 'p/a']) await claim(key)
    await clock.settle()
    expect(calls).toEqual(['p/a', 'p/b', 'p/a'])
  })

  it('starts at the revision that its listener returns', async () => {
    const { clock, inner, client, claim } = await open()
    await claim('p/before')
    const { revision } = await inner.read({ prefix: 'p/' })
    await claim('p/after')
    const { calls, listener } = listening({ begin: async () => revision })
    client.watchPrefix('p/', listener)
    await clock.settle()
    expect(calls).toEqual(['p/after'])
  })

  it('resumes from its last revision after an interruption', async () => {
    const { clock, store, client, claim } = await open()
    const { calls, listener } = listening()
    const following = client.watchPrefix('p/', listener)
    await following.ready
    await claim('p/a')
    await clock.settle()
    store.interrupt()
    expect(following.live).toBe(false)
    await claim('p/b')
    await clock.advance(100)
    expect(following.live).toBe(true)
    expect(calls).toEqual(['p/a', 'p/b'])
  })

  it('reports missed events that the store no longer has, and continues from now', async () => {
    const { clock, store, client, claim } = await open()
    const { calls, listener } = listening()
    const following = client.watchPrefix('p/', listener)
    await following.ready
    store.interrupt()
    for (let n = 0; n < 3000; n++) await claim(`other/${n}`)
    await claim('p/missed')
    await clock.advance(1000)
    expect(calls).toEqual(['missed'])
    await claim('p/a')
    await clock.settle()
    expect(calls).toEqual(['missed', 'p/a'])
  })

  it('pauses longer after each failure, and starts over after a success', async () => {
    const { clock, store, client, opened } = await open()
    failingWatch(
      store,
      Array.from({ length: 3 }, () => new LeaseholdError('unknown-outcome', 'broken')),
    )
    client.watchPrefix('p/', listening().listener)
    await clock.advance(1000)
    expect(opened).toEqual([0, 50, 150, 350])
    store.interrupt()
    await clock.advance(100)
    expect(opened.at(-1)).toBe(1050)
  })

  it('tries again after a right was withdrawn, but not if it never had the right', async () => {
    const never = await open()
    failingWatch(never.store, [FORBIDDEN])
    const refused = never.client.watchPrefix('p/', listening().listener)
    await expect(refused.ready).rejects.toBe(FORBIDDEN)
    await never.clock.advance(60_000)
    expect(never.opened).toEqual([0])

    const once = await open()
    const following = once.client.watchPrefix('p/', listening().listener)
    await following.ready
    failingWatch(once.store, [FORBIDDEN])
    once.store.interrupt()
    await once.clock.advance(1000)
    expect(following.live).toBe(true)
  })

  it.each(['invalid-argument', 'closed'] as const)('ends if the store says %s', async (code) => {
    const { clock, store, client, opened } = await open()
    const error = new LeaseholdError(code, 'never')
    failingWatch(store, [error])
    const following = client.watchPrefix('p/', listening().listener)
    await expect(following.ready).rejects.toBe(error)
    await clock.advance(60_000)
    expect(opened).toEqual([0])
  })

  it('closes once, reports nothing more, and leaves no timers', async () => {
    const { clock, store, client, claim, opened } = await open()
    const { calls, listener } = listening()
    const following = client.watchPrefix('p/', listener)
    await following.ready
    expect(following.closed).toBe(false)
    following.close()
    following[Symbol.dispose]()
    expect([following.closed, following.live]).toEqual([true, false])
    await claim('p/a')
    await clock.advance(60_000)
    expect(calls).toEqual(['closed'])
    expect(store.count('read')).toBe(0)
    expect(opened).toEqual([0])
  })

  it('is not opened if it was closed while it began', async () => {
    const { clock, client, opened } = await open()
    const { calls, listener } = listening({
      begin: () => new Promise((resolve) => clock.timer(clock.now() + 100, () => resolve(0))),
    })
    const following = client.watchPrefix('p/', listener)
    const ready = expect(following.ready).rejects.toMatchObject({ code: 'closed' })
    await clock.advance(50)
    following.close()
    await clock.advance(100)
    await ready
    expect(opened).toEqual([])
    expect(calls).toEqual(['closed'])
  })

  it('is not opened again if it was closed while it began, and that failed', async () => {
    const { clock, client, opened } = await open()
    let begins = 0
    const { listener } = listening({
      begin: () => {
        begins++
        return new Promise((_, reject) => {
          clock.timer(clock.now() + 100, () => reject(new Error('broken')))
        })
      },
    })
    const following = client.watchPrefix('p/', listener)
    await clock.advance(50)
    following.close()
    await clock.advance(60_000)
    expect([begins, opened]).toEqual([1, []])
  })

  it('is closed at the end of its block', async () => {
    const { client } = await open()
    const { calls, listener } = listening()
    client.watchPrefix('p/', listener)[Symbol.dispose]()
    expect(calls).toEqual(['closed'])
  })

  it('does not listen to a watch that it has replaced', async () => {
    const { clock, store, client, claim } = await open()
    const observers: Observer[] = []
    const watch = store.watch.bind(store)
    store.watch = (target, observer) => {
      observers.push(observer)
      return watch(target, observer)
    }
    const { calls, listener } = listening()
    await client.watchPrefix('p/', listener).ready
    store.interrupt()
    await clock.advance(100)
    expect(observers).toHaveLength(2)
    await claim('p/a')
    await clock.settle()
    expect(calls).toEqual(['p/a'])
    observers[0]!({ type: 'compacted', oldest: 1 })
    expect(calls).toEqual(['p/a'])
  })

  it('keeps a watch that was opened while a check for a dead connection failed', async () => {
    const { clock, store, client, opened } = await open()
    const following = client.watchPrefix('p/', listening().listener)
    let reads = 0
    store.fault = (call) => (call === 'read' && ++reads <= 3 ? { lost: 'request' } : undefined)
    for (const ms of [2100, 800]) {
      await clock.advance(ms)
      store.interrupt()
    }
    await clock.advance(3000)
    expect(opened).toEqual([0, 2150, 2950])
    expect(following.live).toBe(true)
  })

  it('is not opened again if it was closed while it rested', async () => {
    const { clock, store, client, opened } = await open()
    const following = client.watchPrefix('p/', listening().listener)
    await following.ready
    store.interrupt()
    following.close()
    await clock.advance(60_000)
    expect(opened).toEqual([0])
  })

  it('closes with its client', async () => {
    const { client } = await open()
    const { calls, listener } = listening()
    const following = client.watchPrefix('p/', listener)
    await client.close()
    expect(calls).toEqual(['closed'])
    expect(following.closed).toBe(true)
    expect(() => client.watchPrefix('p/', listener)).toThrowError(
      expect.objectContaining({ code: 'closed' }),
    )
  })
})

describe('a connection that died silently', () => {
  it('is checked every two seconds', async () => {
    const { clock, store, client } = await open()
    client.watchPrefix('p/', listening().listener)
    await clock.advance(1999)
    expect(store.count('read')).toBe(0)
    await clock.advance(1)
    expect(store.count('read')).toBe(1)
    await clock.advance(4000)
    expect(store.count('read')).toBe(3)
  })

  it('is not checked if the store is in this process', async () => {
    const { clock, store, client } = await open(true)
    const following = client.watchPrefix('p/', listening().listener)
    await clock.advance(60_000)
    expect(store.count('read')).toBe(0)
    expect(following.age()).toBe(0)
  })

  it('is opened again when calls do not get through, and catches up', async () => {
    const { clock, store, client, claim, opened } = await open()
    // This watch reports nothing any more, like one without a connection.
    let deaf = false
    const watch = store.watch.bind(store)
    store.watch = (target, observer): Watch => {
      const hears: Observer = (notice) => {
        if (!deaf || opened.length > 1) observer(notice)
      }
      return watch(target, hears)
    }
    const { calls, listener } = listening()
    const following = client.watchPrefix('p/', listener)
    await following.ready
    deaf = true
    await claim('p/a')
    store.fault = () => ({ error: new LeaseholdError('unknown-outcome', 'broken') })
    await clock.advance(3000)
    expect(opened.length).toBeGreaterThan(1)
    store.fault = () => undefined
    await clock.advance(6000)
    expect(calls).toEqual(['p/a'])
    expect(following.live).toBe(true)
  })

  it('is as old as the last sign of the store, even an answer', async () => {
    const { clock, store, client, claim } = await open()
    const following = client.watchPrefix('p/', listening().listener)
    expect(following.age()).toBe(Infinity)
    await following.ready
    await clock.advance(1500)
    expect(following.age()).toBe(1500)
    await claim('p/a')
    await clock.settle()
    expect(following.age()).toBe(0)
    await clock.advance(1000)
    // It was checked half a second ago.
    expect(following.age()).toBe(500)
    store.freeze()
    await clock.advance(10_000)
    expect(following.age()).toBe(10_500)
  })
})
