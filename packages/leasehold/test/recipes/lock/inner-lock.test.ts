import { describe, expect, it } from 'vitest'
import { Leasehold, type Lock } from '../../../src/index.ts'
import { testStore } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'

async function scene(keys: string | string[] = ['k', 'l']) {
  const { store, clock } = testStore()
  const leasehold = await Leasehold.open(store, { clock, holder: 'me' })
  const outer = await leasehold.lock(keys, { value: 'outer' })
  const inner = await leasehold.lock('k', { within: outer })
  return { store, clock, leasehold, outer, inner }
}

function codeOf(read: () => unknown): string {
  try {
    read()
  } catch (error) {
    return (error as { code: string }).code
  }
  return 'none'
}

const WRONG = { code: 'invalid-argument' }

describe('a lock within another', () => {
  it('is the same claim, under its own keys', async () => {
    const { leasehold, outer } = await scene()
    const { lock: inner, conflict } = await leasehold.tryLock(['l', 'k'], { within: outer })
    expect(conflict).toBeUndefined()
    expect(inner).toMatchObject({
      key: 'l',
      keys: ['l', 'k'],
      lease: outer.lease,
      token: outer.token,
      claimToken: outer.claimToken,
      state: 'held',
      held: true,
      signal: outer.signal,
    })
    expect(inner!.remaining()).toBe(outer.remaining())
    expect(() => inner!.assertHeld()).not.toThrow()
  })

  it('renews the outer one', async () => {
    const { clock, outer, inner } = await scene()
    await clock.advance(5000)
    const before = outer.remaining()
    await inner.renew()
    expect(outer.remaining()).toBeGreaterThan(before)
  })

  it('renews a lapsed outer one', async () => {
    const { store, clock } = testStore()
    const link = new FaultyStore(store, clock)
    const leasehold = await Leasehold.open(link, { clock })
    const outer = await leasehold.lock('k', { ttl: '1s', grace: '1m' })
    const inner = await leasehold.lock('k', { within: outer })
    link.fault = (call) => (call === 'renew' ? { lost: 'request' } : undefined)
    await clock.advance(2000)
    expect(inner.state).toBe('lapsed')
    link.fault = () => undefined
    await inner.renew()
    expect(inner.state).toBe('held')
  })

  it('keeps an outer one alive that expires without activity', async () => {
    const { store, clock } = testStore()
    const leasehold = await Leasehold.open(store, { clock })
    const outer = await leasehold.lock('k', { strategy: 'session', ttl: '10s' })
    const inner = await leasehold.lock('k', { within: outer })
    await clock.advance(6000)
    inner.touch()
    await clock.advance(6000)
    expect(outer.held).toBe(true)
    await inner.release()
    inner.touch()
    await clock.advance(6000)
    expect(outer.state).toBe('lost')
  })

  it('changes the value on its own first key, or on the key that is named', async () => {
    const { store, leasehold, outer } = await scene()
    const inner = await leasehold.lock(['l', 'k'], { within: outer })
    const valueOn = async (key: string) => (await store.read({ key })).claims[0]!.value
    await inner.update('mine')
    expect([await valueOn('k'), await valueOn('l')]).toEqual(['outer', 'mine'])
    await inner.update('ours', 'k')
    expect([await valueOn('k'), await valueOn('l')]).toEqual(['ours', 'mine'])
  })

  it.each<[string, (inner: Lock) => PromiseLike<void>]>([
    ['release', (inner) => inner.release()],
    ['leaving its block', (inner) => inner[Symbol.asyncDispose]()],
  ])('ends by %s, and leaves the outer one as it was', async (_, end) => {
    const { outer, inner } = await scene()
    const before = outer.remaining()
    await end(inner)
    expect([inner.state, inner.held, inner.remaining()]).toEqual(['released', false, 0])
    expect(codeOf(() => inner.assertHeld())).toBe('claim-not-found')
    expect(codeOf(() => inner.token)).toBe('claim-not-found')
    await expect(inner.renew()).rejects.toMatchObject({ code: 'claim-not-found' })
    await expect(inner.update('x')).rejects.toMatchObject({ code: 'claim-not-found' })
    expect([outer.state, outer.remaining()]).toEqual(['held', before])
  })

  it('is lost with the outer one', async () => {
    const { clock, store, outer, inner } = await scene()
    await store.revoke({ target: { lease: outer.lease } })
    await clock.settle()
    expect([inner.state, inner.held, inner.signal.aborted]).toEqual(['lost', false, true])
    expect(codeOf(() => inner.assertHeld())).toBe('lost')
    expect(codeOf(() => inner.token)).toBe('lost')
  })

  it('is refused if the outer one is not held or not a lock', async () => {
    const { leasehold, outer } = await scene()
    const lock = (within: unknown) => leasehold.lock('k', { within: within as Lock })
    await expect(lock(null)).rejects.toMatchObject(WRONG)
    await expect(lock('k')).rejects.toMatchObject(WRONG)
    await expect(lock({ keys: 'k' })).rejects.toMatchObject(WRONG)
    await outer.release()
    await expect(lock(outer)).rejects.toMatchObject({ code: 'claim-not-found' })
  })

  it('is refused for a key, a mode or a limit that the outer one does not have', async () => {
    const { leasehold, outer } = await scene()
    const lock = (keys: string | string[], options: object) =>
      leasehold.lock(keys, { within: outer, ...options })
    await expect(lock('m', {})).rejects.toThrowError(
      /^"m" is not part of the outer lock on "k", "l"/,
    )
    await expect(lock(['k', 'm'], {})).rejects.toMatchObject(WRONG)
    await expect(lock('k', { mode: 'exclusive' })).rejects.toMatchObject(WRONG)
    await expect(lock('k', { limit: 2 })).rejects.toMatchObject(WRONG)
  })
})
