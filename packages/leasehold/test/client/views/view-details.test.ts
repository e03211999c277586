import { describe, expect, it } from 'vitest'
import { Client } from '../../../src/client/index.ts'
import type { Event } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

async function open(inProcess = false) {
  const clock = new TestClock()
  const inner = memoryStore({ clock, limits: { events: 16 } })
  const store = new FaultyStore(inner, clock, inProcess)
  const client = new Client(store, { clock, holder: 'viewer' })
  const granted = await inner.grant({ holder: 'someone', ttl: Infinity })
  const lease = granted.outcome === 'granted' ? granted.lease : ''
  const claim = async (key: string, rest = {}) => {
    const claimed = await inner.claim({ lease, claims: [{ key, ...rest }] })
    return claimed.outcome === 'claimed' ? claimed.token : 0
  }
  /** More events than the store keeps: a view that has not seen them must read everything again. */
  const flood = async () => {
    for (let n = 0; n < 1250; n++) {
      const token = await claim('flood')
      await inner.release({ lease, keys: ['flood'], token })
    }
  }
  return { clock, inner, store, client, lease, claim, flood }
}

function changes() {
  const seen: { keys: string[]; ended: string[] }[] = []
  const changed = (keys: ReadonlySet<string>, ended: readonly Event[]) => {
    seen.push({ keys: [...keys].sort(), ended: ended.map(({ key, token }) => `${key} ${token}`) })
  }
  return { seen, changed }
}

describe('the places of a view', () => {
  it('are those in a read, with the time since when they hold', async () => {
    const { clock, inner, client, lease, claim } = await open()
    const view = client.view('p/')
    await view.ready
    const first = await claim('p/a', { mode: 'shared', limit: 2, value: 'v' })
    await clock.advance(100)
    await claim('p/a', { mode: 'shared', limit: 2 })
    await clock.advance(100)
    for (let n = 0; n < 2; n++) await claim('p/a')
    const expected = async () => {
      const { claims } = await inner.read({ key: 'p/a' })
      return claims.map(({ until: _, ...place }) => place)
    }
    await clock.settle()
    expect(view.places('p/a')).toEqual(await expected())
    expect(view.holders('p/a')).toHaveLength(2)
    await clock.advance(100)
    // The second holds since its claim; the third since the first two have ended.
    await inner.release({ lease, keys: ['p/a'], token: first })
    await clock.advance(100)
    expect(view.places('p/a')).toEqual(await expected())
    const [second] = view.holders('p/a')
    await inner.release({ lease, keys: ['p/a'], token: second!.token })
    await clock.advance(100)
    expect(view.places('p/a')).toEqual(await expected())
    expect(view.holders('p/a')).toHaveLength(1)
    const read = client.view('p/')
    await read.ready
    expect(read.places('p/a')).toEqual(await expected())
  })

  it('are empty for a key without claims', async () => {
    const { client } = await open()
    const view = client.view('p/')
    await view.ready
    expect([view.places('p/x'), view.holders('p/x'), [...view.keys()]]).toEqual([[], [], []])
  })

  it('are as many as the keys, page by page', async () => {
    const { client, claim } = await open()
    for (let n = 0; n < 2001; n++) await claim(`p/${n}`)
    const view = client.view('p/')
    await view.ready
    expect([...view.keys()]).toHaveLength(2001)
  })
})

describe('changes', () => {
  it('name the keys, and the claims that have ended', async () => {
    const { clock, inner, client, lease, claim } = await open()
    const { seen, changed } = changes()
    const view = client.view('p/', changed)
    await view.ready
    const token = await claim('p/a')
    await clock.settle()
    await inner.update({ lease, key: 'p/a', token, value: 'new' })
    await clock.settle()
    await inner.release({ lease, keys: ['p/a'], token })
    await clock.settle()
    expect(seen).toEqual([
      { keys: ['p/a'], ended: [] },
      { keys: ['p/a'], ended: [] },
      { keys: ['p/a'], ended: [`p/a ${token}`] },
    ])
  })

  it('are reported once for all events of a revision', async () => {
    const { clock, inner, client, lease } = await open()
    const { seen, changed } = changes()
    const view = client.view('p/', changed)
    await view.ready
    await inner.claim({ lease, claims: [{ key: 'p/a' }, { key: 'p/b' }] })
    await clock.settle()
    expect(seen).toEqual([{ keys: ['p/a', 'p/b'], ended: [] }])
  })

  it('are all that was there at first, and none if there was nothing', async () => {
    const { store, client, claim } = await open()
    const nothing = changes()
    await client.view('q/', nothing.changed).ready
    expect(nothing.seen).toEqual([])
    await claim('p/a')
    await claim('p/b')
    const { seen, changed } = changes()
    const before = store.count('read')
    await client.view('p/', changed).ready
    expect(seen).toEqual([{ keys: ['p/a', 'p/b'], ended: [] }])
    expect(store.count('read') - before).toBe(1)
  })

  it('are not reported if the view has read them already', async () => {
    const { clock, inner, store, client, lease } = await open()
    for (let n = 0; n < 40; n++) await inner.claim({ lease, claims: [{ key: 'p/a' }] })
    store.fault = () => ({ there: 100 })
    const { seen, changed } = changes()
    const view = client.view('p/', changed)
    await clock.advance(150)
    // After the page was read, and before the rest of its long queue.
    await inner.claim({ lease, claims: [{ key: 'p/a' }] })
    await clock.advance(150)
    expect(view.places('p/a')).toHaveLength(41)
    expect(seen).toEqual([{ keys: ['p/a'], ended: [] }])
  })

  it('of a value are of one claim and not of the others on its key', async () => {
    const { clock, inner, client, lease, claim } = await open()
    const view = client.view('p/')
    await view.ready
    await claim('p/a', { value: 'one' })
    const token = await claim('p/a', { value: 'two' })
    await inner.update({ lease, key: 'p/a', token, value: 'new' })
    await clock.settle()
    expect(view.places('p/a').map(({ value }) => value)).toEqual(['one', 'new'])
  })

  it('are the differences if everything was read again', async () => {
    const { clock, inner, store, client, lease, claim, flood } = await open()
    const [same, gone, valued, joined] = ['p/same', 'p/gone', 'p/valued', 'p/joined']
    for (const key of [same!, joined!]) await claim(key)
    const tokens = [await claim(gone!), await claim(valued!)]
    const { seen, changed } = changes()
    const view = client.view('p/', changed)
    await view.ready
    seen.length = 0
    store.interrupt()
    await inner.release({ lease, keys: [gone!], token: tokens[0]! })
    await inner.update({ lease, key: valued!, token: tokens[1]!, value: 'new' })
    await claim(joined!)
    await claim('p/new')
    await flood()
    await clock.advance(1000)
    expect(seen).toEqual([{ keys: ['p/gone', 'p/joined', 'p/new', 'p/valued'], ended: [] }])
    expect(view.places(joined!)).toHaveLength(2)
  })

  it('are empty if everything was read again and is unchanged', async () => {
    const { clock, store, client, claim, flood } = await open()
    await claim('p/a', { value: 'v' })
    const { seen, changed } = changes()
    await client.view('p/', changed).ready
    seen.length = 0
    store.interrupt()
    await flood()
    await clock.advance(1000)
    expect(seen).toEqual([])
  })

  it('are reported for claims that were replaced by as many others', async () => {
    const { clock, inner, store, client, lease, claim, flood } = await open()
    const first = await claim('p/a')
    const token = await claim('p/a')
    const { seen, changed } = changes()
    const view = client.view('p/', changed)
    await view.ready
    seen.length = 0
    store.interrupt()
    await inner.release({ lease, keys: ['p/a'], token })
    const next = await claim('p/a')
    await flood()
    await clock.advance(1000)
    expect(seen).toEqual([{ keys: ['p/a'], ended: [] }])
    expect(view.places('p/a').map((place) => place.token)).toEqual([first, next])
  })
})

describe('the latest', () => {
  it('is read from the store now, whatever the view knows', async () => {
    const { clock, store, client, claim } = await open()
    for (let n = 0; n < 40; n++) await claim('p/a')
    const view = client.view('p/')
    await view.ready
    store.interrupt()
    await claim('p/b')
    const latest = await view.latest()
    expect([...latest.keys()]).toEqual(['p/a', 'p/b'])
    expect([latest.places('p/a').length, latest.places('p/x')]).toEqual([40, []])
    expect([...view.keys()]).toEqual(['p/a'])
    await clock.settle()
  })
})

describe('a view that is closed', () => {
  it('receives nothing more', async () => {
    const { clock, client, claim } = await open()
    for (const end of ['close', Symbol.dispose] as const) {
      const { seen, changed } = changes()
      const view = client.view('p/', changed)
      await view.ready
      seen.length = 0
      expect(view.live).toBe(true)
      view[end]()
      expect(view.live).toBe(false)
      await claim('p/a')
      await clock.settle()
      expect(seen).toEqual([])
    }
  })

  it('while it reads shows nothing of it', async () => {
    const { clock, store, client, claim } = await open()
    await claim('p/a')
    store.fault = () => ({ back: 100 })
    const { seen, changed } = changes()
    const view = client.view('p/', changed)
    view.ready.catch(() => {})
    await clock.advance(50)
    view.close()
    await clock.advance(100)
    expect([seen, [...view.keys()]]).toEqual([[], []])
  })
})
