import { describe, expect, it } from 'vitest'
import { isLeaseholdError, Leasehold } from '../../../src/index.ts'
import { entryState, FAILED, type Mark } from '../../../src/recipes/cache/entry-state.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { type CallName, FaultyStore } from '../../client/faulty-store.ts'

async function twoProcesses(callTimeout = 60_000) {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const open = async (holder: string) => {
    const link = new FaultyStore(store, clock)
    const leasehold = await Leasehold.open(link, { clock, holder, callTimeout })
    return { link, leasehold }
  }
  return { clock, store, a: await open('a'), b: await open('b') }
}

/** The n-th of these calls takes five seconds on its way to the store. */
function slow(link: FaultyStore, name: CallName, nth: number): void {
  let seen = 0
  link.fault = (call) => (call === name && ++seen === nth ? { there: 5000 } : undefined)
}

describe('a loader that was too slow', () => {
  // Its first grant is the load claim; then come the claims for the value, then the value.
  it.each<{ what: string; call: CallName; nth: number; stale: '0s' | '1m' }>([
    { what: 'its claims', call: 'grant', nth: 2, stale: '0s' },
    { what: 'its value', call: 'update', nth: 1, stale: '0s' },
    { what: 'its claims', call: 'grant', nth: 2, stale: '1m' },
    { what: 'its mark', call: 'grant', nth: 3, stale: '1m' },
    { what: 'its value', call: 'update', nth: 1, stale: '1m' },
  ])('does not replace a newer value if $what is late (stale: $stale)', async (row) => {
    const { clock, store, a, b } = await twoProcesses()
    const events: string[] = []
    a.leasehold.on('recipe-event', ({ event }) => events.push(event))
    slow(a.link, row.call, row.nth)
    const [mine, theirs] = [a, b].map(({ leasehold }) =>
      leasehold.cache<string>('c', { stale: row.stale }),
    )
    const late = mine!.get('k', () => 'old')
    await clock.advance(100)
    // Somebody revokes the load claim while the write is on its way.
    await store.revoke({ target: { key: 'cache/c/k/load' } })
    expect(await theirs!.get('k', () => 'new')).toBe('new')
    await clock.advance(10_000)
    expect(await late).toBe('new')
    expect(await theirs!.peek('k')).toBe('new')
    expect(events).toEqual(['refused'])
    expect(await theirs!.get('k', () => 'newest')).toBe('new')
    const { keys } = await store.read({ prefix: 'cache/c/k/' })
    expect(keys.map(({ key, count }) => `${key} ${count}`)).toEqual([
      'cache/c/k/load 1',
      'cache/c/k/value 1',
    ])
  })

  it.each(['0s', '1m'] as const)(
    'has no effect while another loads in its place (stale: %s)',
    async (stale) => {
      const { clock, store, a, b } = await twoProcesses()
      slow(a.link, 'update', 1)
      const late = a.leasehold.cache<string>('c', { stale }).get('k', () => 'old')
      await clock.advance(100)
      await store.revoke({ target: { key: 'cache/c/k/load', token: 1 } })
      let finish: (value: string) => void = () => {}
      const theirs = b.leasehold.cache<string>('c', { stale })
      const next = theirs.get('k', () => new Promise<string>((resolve) => (finish = resolve)))
      await clock.advance(10_000)
      expect(await late).toBe('old')
      expect(await theirs.peek('k')).toBeUndefined()
      finish('new')
      expect(await next).toBe('new')
    },
  )

  it('does not restore a value that was deleted meanwhile', async () => {
    const { clock, a, b } = await twoProcesses()
    slow(a.link, 'update', 1)
    const late = a.leasehold.cache<string>('c').get('k', () => 'old')
    await clock.advance(100)
    await b.leasehold.cache('c').delete('k')
    await clock.advance(10_000)
    expect(await late).toBe('old')
    expect(await b.leasehold.cache('c').peek('k')).toBeUndefined()
  })

  it('learns from its signal that another may load, and is not awaited', async () => {
    const { clock, a, b } = await twoProcesses()
    let signal: AbortSignal | undefined
    const options = { loadTtl: '5s', loadMax: '20s' } as const
    const hung = a.leasehold
      .cache<string>('c', options)
      .get('k', (context) => {
        signal = context.signal
        return new Promise<string>(() => {})
      })
      .catch((error: unknown) => error)
    await clock.advance(10)
    const next = b.leasehold.cache<string>('c', options).get('k', () => 'new')
    await clock.advance(19_000)
    expect(signal!.aborted).toBe(false)
    await clock.advance(2000)
    expect(signal!.aborted).toBe(true)
    expect(await next).toBe('new')
    const outcome = await hung
    expect(outcome === 'new' || isLeaseholdError(outcome, 'lost')).toBe(true)
  })
})

describe('a loader that died between its claims and its value', () => {
  it.each(['0s', '1m'] as const)('is replaced (stale: %s)', async (stale) => {
    const { clock, a, b } = await twoProcesses()
    a.link.fault = (call) => (call === 'update' ? { lost: 'request' } : undefined)
    a.leasehold
      .cache<string>('c', { stale, loadTtl: '5s' })
      .get('k', () => 'old')
      .catch(() => undefined)
    await clock.advance(100)
    a.link.freeze()
    const next = b.leasehold.cache<string>('c', { stale }).get('k', () => 'new')
    await clock.advance(4000)
    expect(await b.leasehold.cache('c').peek('k')).toBeUndefined()
    await clock.advance(2000)
    expect(await next).toBe('new')
  })
})

describe('a hit', () => {
  it('costs one read, or none while a copy is valid', async () => {
    const { clock, a, b } = await twoProcesses()
    const plain = a.leasehold.cache<number>('c')
    const copying = a.leasehold.cache<number>('c', { local: '1s' })
    await plain.set('k', 1)
    const fail = () => {
      throw new Error('must not be called')
    }
    let before = a.link.calls.length
    for (let i = 0; i < 10; i++) await plain.get('k', fail)
    expect(a.link.calls.slice(before)).toEqual(Array(10).fill('read'))
    before = a.link.calls.length
    for (let i = 0; i < 10; i++) await copying.get('k', fail)
    expect(a.link.calls.slice(before)).toEqual(['read'])
    await b.leasehold.cache<number>('c').set('k', 2)
    expect(await copying.get('k', fail)).toBe(1)
    await clock.advance(1000)
    expect(await copying.get('k', fail)).toBe(2)
    await copying.set('k', 3)
    expect(await copying.get('k', fail)).toBe(3)
  })
})

describe('a waiter', () => {
  it('makes no calls while nothing happens', async () => {
    const { clock, a, b } = await twoProcesses()
    let finish: (value: string) => void = () => {}
    const first = a.leasehold
      .cache<string>('c')
      .get('k', () => new Promise<string>((resolve) => (finish = resolve)))
    await clock.advance(100)
    const waits = [1, 2, 3].map(() => b.leasehold.cache<string>('c').get('k', () => 'b'))
    await clock.advance(100)
    const before = b.link.calls.length
    await clock.advance(1000)
    expect(b.link.calls.length).toBe(before)
    finish('a')
    await clock.advance(100)
    expect(await Promise.all([first, ...waits])).toEqual(['a', 'a', 'a', 'a'])
  })
})

describe('in an outage', () => {
  it('a cache fails with timeout and does not load', async () => {
    const { clock, a } = await twoProcesses(500)
    a.link.freeze()
    let runs = 0
    const failed = a.leasehold
      .cache('c')
      .get('k', () => ++runs)
      .catch((error: unknown) => error)
    await clock.advance(10_000)
    expect(isLeaseholdError(await failed, 'timeout')).toBe(true)
    expect(runs).toBe(0)
  })

  it('a value is returned although it is unknown whether it was stored', async () => {
    const { clock, a } = await twoProcesses(500)
    a.link.fault = (call) => (call === 'update' ? { lost: 'reply' } : undefined)
    const events: string[] = []
    a.leasehold.on('recipe-event', ({ event }) => events.push(event))
    const cache = a.leasehold.cache('c')
    const got = cache.get('k', () => 'value')
    await clock.advance(10_000)
    expect(await got).toBe('value')
    expect(events).toEqual(['unstored'])
    // It was stored and stays.
    expect(await cache.peek('k')).toBe('value')
  })

  it('a value is returned, and no failure published, although the store could not be read', async () => {
    const { clock, a } = await twoProcesses(500)
    let isLoaded = false
    a.link.fault = (call) => (isLoaded && call === 'read' ? { lost: 'reply' } : undefined)
    const events: string[] = []
    a.leasehold.on('recipe-event', ({ event }) => events.push(event))
    const got = a.leasehold.cache('c').get('k', () => {
      isLoaded = true
      return 'value'
    })
    await clock.advance(10_000)
    expect(await got).toBe('value')
    expect(events).toEqual(['unstored'])
  })

  it('a loader that lost its lease fails with that, although the current loader is unknown', async () => {
    const { clock, a } = await twoProcesses(500)
    const cache = a.leasehold.cache('c', { loadTtl: '2s' })
    const lost = cache.get('k', () => new Promise(() => {})).catch((error: unknown) => error)
    await clock.advance(100)
    a.link.freeze()
    await clock.advance(20_000)
    expect(isLeaseholdError(await lost, 'lost')).toBe(true)
  })
})

describe('the state of an entry', () => {
  const mark = (token: number, lease: string, rest: Partial<Mark> = {}): Mark => ({
    token,
    lease,
    holder: 'h',
    mode: 'shared',
    ...rest,
  })
  const loader = mark(1, 'l', { mode: 'exclusive' })

  it.each<[string, Mark[], Mark[], unknown]>([
    ['missing', [], [], { type: 'missing', stale: undefined }],
    ['loading', [loader], [], { type: 'loading', stale: undefined }],
    ['about to be stored', [loader, mark(2, 'e')], [mark(2, 'e')], { type: 'loading' }],
    ['fresh', [mark(2, 'e')], [mark(2, 'e', { value: 'v' })], { type: 'fresh', json: 'v' }],
    [
      'fresh, with a mark of its own',
      [mark(3, 'm', { value: 'e' })],
      [mark(2, 'e', { value: 'v' })],
      { type: 'fresh', json: 'v' },
    ],
    ['stale', [], [mark(2, 'e', { value: 'v' })], { type: 'missing', stale: 'v' }],
    ['loaded anew', [loader], [mark(2, 'e', { value: 'v' })], { type: 'loading', stale: 'v' }],
    ['abandoned', [mark(2, 'e')], [mark(2, 'e')], { type: 'orphaned' }],
    [
      'failed',
      [mark(2, 'f', { value: `${FAILED}why` })],
      [],
      { type: 'failed', holder: 'h', message: 'why' },
    ],
    [
      'the newest of two values',
      [mark(3, 'b')],
      [mark(2, 'a', { value: 'old' }), mark(3, 'b', { value: 'new' })],
      { type: 'fresh', json: 'new' },
    ],
  ])('is derived from its claims: %s', (_, load, values, expected) => {
    expect(entryState(load, values)).toMatchObject(expected as object)
  })
})
