import { describe, expect, it } from 'vitest'
import { isLeaseholdError, Leasehold, type LeaseStore } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'
import { changedStore } from '../../setup/changed-store.ts'

async function open() {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const leasehold = await Leasehold.open(store, { clock, holder: 'me' })
  const rival = await Leasehold.open(store, { clock, holder: 'rival' })
  return { clock, store, leasehold, rival }
}

describe('lock', () => {
  it('has a token that increases with every hand-over', async () => {
    const { leasehold } = await open()
    const first = await leasehold.lock('k')
    const { token } = first
    await first.release()
    const second = await leasehold.lock('k')
    expect(second.token).toBeGreaterThan(token)
  })

  it('is released once, however often release is called', async () => {
    const { clock, store, leasehold } = await open()
    const first = await leasehold.lock('k')
    await Promise.all([first.release(), first.release()])
    const second = await leasehold.lock('k')
    await first.release()
    await clock.settle()
    expect(second.held).toBe(true)
    expect((await store.read({ key: 'k' })).count).toBe(1)
    expect(first.state).toBe('released')
    expect(() => first.token).toThrowError(expect.objectContaining({ code: 'claim-not-found' }))
  })

  it('is released at the end of its block', async () => {
    const { leasehold, rival } = await open()
    {
      await using lock = await leasehold.lock('k')
      expect(lock.held).toBe(true)
      expect((await rival.tryLock('k')).lock).toBeUndefined()
    }
    expect((await rival.tryLock('k')).lock?.held).toBe(true)
  })

  it('ignores the release of a lost lock', async () => {
    const { clock, store, leasehold } = await open()
    const a = await leasehold.lock('a')
    const b = await leasehold.lock('b')
    await store.revoke({ target: { key: 'a' } })
    await a.release()
    await clock.settle()
    await store.revoke({ target: { lease: b.lease } })
    await b.release()
    await clock.settle()
    await b.release()
  })

  it('may be shared, up to its limit', async () => {
    const { leasehold, rival } = await open()
    const options = { mode: 'shared', limit: 2 } as const
    await leasehold.lock('k', options)
    expect((await rival.tryLock('k')).lock).toBeUndefined()
    const second = await rival.tryLock('k', options)
    expect(second.lock?.held).toBe(true)
    expect((await rival.tryLock('k', options)).lock).toBeUndefined()
    expect((await rival.tryLock(['l', 'k'], options)).conflict?.key).toBe('k')
  })

  it('shows its value to others', async () => {
    const { leasehold, rival } = await open()
    await leasehold.lock('k', { value: 'nightly report' })
    const { conflict } = await rival.tryLock('k')
    expect(conflict?.value).toBe('nightly report')
  })
})

describe('tryLock', () => {
  it('takes a free lock', async () => {
    const { leasehold } = await open()
    const { lock, conflict } = await leasehold.tryLock('k')
    expect(lock?.held).toBe(true)
    expect(conflict).toBeUndefined()
  })

  it('returns who holds it, since when and until when, and leaves no claim', async () => {
    const { clock, store, leasehold, rival } = await open()
    const held = await rival.lock('k', { ttl: '10s' })
    rival.lock('k').catch(() => undefined)
    const since = clock.now()
    await clock.advance(1000)
    const { lock, conflict } = await leasehold.tryLock('k')
    expect(lock).toBeUndefined()
    expect(conflict).toMatchObject({
      key: 'k',
      holder: 'rival',
      token: held.token,
      since,
      ahead: 2,
    })
    expect(conflict!.until).toBe(since + 10_000)
    expect((await store.read({ key: 'k' })).count).toBe(2)
  })

  it('is released at the end of its block, if there is a lock', async () => {
    const { leasehold, rival } = await open()
    {
      await using mine = await leasehold.tryLock('k')
      await using theirs = await rival.tryLock('k')
      expect(mine.lock?.held).toBe(true)
      expect(theirs.conflict?.holder).toBe('me')
    }
    expect((await rival.tryLock('k')).lock?.held).toBe(true)
  })
})

describe('reclaim', () => {
  it('leaves nothing held if the history cannot be read', async () => {
    const clock = new TestClock()
    const link = new FaultyStore(memoryStore({ clock }), clock)
    const leasehold = await Leasehold.open(link, { clock })
    const lost = await leasehold.lock('k', { ttl: '10s' })
    clock.stall(60_000)
    expect(lost.state).toBe('lost')
    link.fault = (call) => (call === 'read' ? { lost: 'request' } : undefined)
    const failed = leasehold.reclaim(lost).catch((error: unknown) => error)
    await clock.advance(60_000)
    expect(await failed).toMatchObject({ code: 'timeout' })
    link.fault = () => undefined
    expect((await leasehold.tryLock('k')).conflict).toBeUndefined()
  })

  it('is refused if there is no lost lock', async () => {
    const { leasehold } = await open()
    await expect(leasehold.reclaim(undefined as never)).rejects.toThrow(/the lock is undefined/)
    await expect(leasehold.reclaim('k' as never)).rejects.toThrow(/^the lock is "k": only/)
    const held = await leasehold.lock('k')
    await expect(leasehold.reclaim(held)).rejects.toMatchObject({
      code: 'invalid-argument',
      message: expect.stringMatching(/^"k" is held: only/),
    })
  })

  it('takes back all keys, with the options that are given', async () => {
    const { clock, store, leasehold, rival } = await open()
    const lost = await leasehold.lock(['k', 'l'])
    await store.revoke({ target: { lease: lost.lease } })
    await clock.settle()
    const { lock } = await leasehold.reclaim(lost, { value: 'again' })
    expect(lock!.keys).toEqual(['k', 'l'])
    expect(lock!.token).toBeGreaterThan(lost.claimToken)
    expect((await rival.tryLock('l')).conflict?.value).toBe('again')
  })

  it('fails if another has held one of several keys since, and leaves them free', async () => {
    const { clock, store, leasehold, rival } = await open()
    const lost = await leasehold.lock(['k', 'l'])
    await store.revoke({ target: { lease: lost.lease } })
    await clock.settle()
    await (await rival.lock('l')).release()
    await expect(leasehold.reclaim(lost)).rejects.toMatchObject({
      code: 'lost',
      reason: 'superseded',
      by: 'rival',
      message: expect.stringContaining('("rival")'),
    })
    expect((await rival.tryLock(['k', 'l'])).lock?.held).toBe(true)
  })

  it('fails if the store has no history of the key', async () => {
    const { clock, store } = await open()
    const forgetful = changedStore(store, {
      read: (async (query) => {
        const reading = await store.read(query)
        return 'history' in query ? { ...reading, tenures: [] } : reading
      }) as LeaseStore['read'],
    })
    const leasehold = await Leasehold.open(forgetful, { clock })
    const lost = await leasehold.lock('k')
    await store.revoke({ target: { lease: lost.lease } })
    await clock.settle()
    await expect(leasehold.reclaim(lost)).rejects.toMatchObject({
      code: 'lost',
      reason: 'superseded',
      by: undefined,
    })
  })

  it('is a conflict if another holds the key now', async () => {
    const { clock, store, leasehold, rival } = await open()
    const lost = await leasehold.lock('k')
    await store.revoke({ target: { lease: lost.lease } })
    await clock.settle()
    await (await rival.lock('k')).release()
    await rival.lock('k')
    const { lock, conflict } = await leasehold.reclaim(lost)
    expect([lock, conflict?.holder]).toEqual([undefined, 'rival'])
  })
})

describe('withLock', () => {
  it('refuses work that is not a function, and locks nothing', async () => {
    const { store, leasehold } = await open()
    await expect(leasehold.withLock('k', {}, 'work' as never)).rejects.toMatchObject({
      code: 'invalid-argument',
      message: expect.stringContaining('the work under "k" is "work"'),
    })
    expect((await store.read({ leases: true })).leases).toEqual([])
  })

  it('returns the result of the work and releases', async () => {
    const { leasehold, rival } = await open()
    const result = await leasehold.withLock('k', async (lock) => {
      expect(lock.held).toBe(true)
      return 42
    })
    expect(result).toBe(42)
    expect((await rival.tryLock('k')).lock?.held).toBe(true)
  })

  it('accepts options and synchronous work', async () => {
    const { leasehold } = await open()
    expect(
      await leasehold.withLock('k', { ttl: '5s' }, (lock) => lock.remaining()),
    ).toBeGreaterThan(4000)
  })

  it('fails with the error of the work, and releases', async () => {
    const { leasehold, rival } = await open()
    const work = leasehold.withLock('k', async () => {
      throw new Error('bad work')
    })
    await expect(work).rejects.toThrow('bad work')
    expect((await rival.tryLock('k')).lock?.held).toBe(true)
  })

  it('never reports work as done that ended after a loss', async () => {
    const { clock, store, leasehold } = await open()
    let finish = () => {}
    const work = leasehold.withLock('k', () => new Promise<void>((resolve) => (finish = resolve)))
    const failed = work.catch((error) => error)
    await clock.settle()
    await store.revoke({ target: { key: 'k' }, by: 'ops', why: 'stuck' })
    await clock.settle()
    finish()
    expect(await failed).toMatchObject({ code: 'lost', reason: 'revoked', by: 'ops', why: 'stuck' })
  })

  it('never reports work as done that stalled past its lock, though no timer ran', async () => {
    const { clock, leasehold } = await open()
    const work = leasehold.withLock('k', { ttl: '1s' }, async () => {
      clock.stall(2000)
      return 'done'
    })
    await expect(work).rejects.toSatisfy((error) => isLeaseholdError(error, 'lost'))
  })

  it('fails with the error of the work even if the lock was lost', async () => {
    const { clock, leasehold } = await open()
    const work = leasehold.withLock('k', { ttl: '1s' }, async () => {
      clock.stall(2000)
      throw new Error('bad work')
    })
    await expect(work).rejects.toThrow('bad work')
  })

  it('allows work to release the lock itself', async () => {
    const { leasehold } = await open()
    const work = leasehold.withLock('k', async (lock) => {
      await lock.release()
      return 'done'
    })
    expect(await work).toBe('done')
  })
})

describe('a lock whose keys have modes of their own', () => {
  /** A node of a tree: shared claims on its parents, an exclusive one on itself. */
  const node = (path: string) => {
    const parts = path.split('/')
    return parts.map((_, at) => ({
      key: parts.slice(0, at + 1).join('/'),
      mode: at + 1 < parts.length ? ('shared' as const) : ('exclusive' as const),
    }))
  }

  it('excludes the parents and the children of a node, and nothing beside it', async () => {
    const { leasehold } = await open()
    const file = await leasehold.lock(node('src/kernel/a.ts'), { value: 'mine' })
    expect(file.keys).toEqual(['src', 'src/kernel', 'src/kernel/a.ts'])

    const { lock: beside } = await leasehold.tryLock(node('src/kernel/b.ts'))
    expect(beside?.held).toBe(true)
    await beside?.release()
    const { conflict: above } = await leasehold.tryLock(node('src/kernel'))
    expect(above).toMatchObject({ key: 'src/kernel', value: 'mine' })
    await file.release()

    const folder = await leasehold.lock(node('src/kernel'))
    const { conflict: below } = await leasehold.tryLock(node('src/kernel/a.ts'))
    expect(below?.key).toBe('src/kernel')
    expect((await leasehold.tryLock(node('src/log'))).lock?.held).toBe(true)
    await folder.release()
  })

  it('takes what a key leaves out from the options', async () => {
    const { store, leasehold } = await open()
    await leasehold.lock(['a', { key: 'b', value: 'own' }], { mode: 'shared', value: 'all' })
    const [a, b] = await Promise.all(['a', 'b'].map((key) => store.read({ key })))
    expect(a?.claims[0]).toMatchObject({ mode: 'shared', value: 'all' })
    expect(b?.claims[0]).toMatchObject({ mode: 'shared', value: 'own' })
  })

  it('refuses a misspelt field', async () => {
    const { leasehold } = await open()
    const wrong = [{ key: 'a', mod: 'shared' }] as unknown as string[]
    await expect(leasehold.lock(wrong)).rejects.toMatchObject({ code: 'invalid-argument' })
  })
})
