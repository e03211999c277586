import { memoryStore } from 'leasehold/memory'
import { DEFAULT_LIMITS, LeaseholdError, type LeaseStore, systemClock } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it, vi } from 'vitest'
import { Access, AccessTokens, noAudit, parseRight } from '../../src/access/index.ts'
import { changedStore, Gate } from '../setup/changed-store.ts'
import { hear, lease, open } from './scene.ts'

describe('a quota with several concurrent calls', () => {
  it('allows no more leases and claims than in sequence', async () => {
    const { as } = await open()
    const { store } = await as('bob', ['claim:'], { leases: 2, claims: 3 })
    const granted = await Promise.allSettled([1, 2, 3, 4, 5].map(() => lease(store)))
    expect(granted.map(({ status }) => status).sort()).toEqual([
      ...['fulfilled', 'fulfilled', 'rejected', 'rejected', 'rejected'],
    ])
    const own = granted.find((it) => it.status === 'fulfilled')!.value.lease
    const claim = (key: string) => store.claim({ lease: own, claims: [{ key }] })
    const claimed = await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map(claim))
    expect(claimed.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
    await expect(claim('f')).rejects.toMatchObject({ code: 'limit-exceeded' })
  })

  it('returns the usage of a call that failed or found a busy key', async () => {
    const { as, store: inner } = await open()
    await lease(inner, ['taken'])
    const { store } = await as('bob', ['claim:'], { leases: 1, claims: 1 })
    const taken = [{ key: 'taken' }]
    const busy = await store.grant({ holder: 'b', ttl: 1000, claims: taken, ifFree: true })
    expect(busy.outcome).toBe('busy')
    const parent = 'nobody.1'
    await expect(store.grant({ holder: 'b', ttl: 1000, parent })).rejects.toThrow()
    const { lease: own } = await lease(store)
    const claim = { lease: own, claims: taken, ifFree: true }
    expect((await store.claim(claim)).outcome).toBe('busy')
    expect((await store.claim({ lease: own, claims: [{ key: 'free' }] })).outcome).toBe('claimed')
  })

  it('is not widened by a release that is sent again', async () => {
    const { as } = await open()
    const { store } = await as('bob', ['claim:'], { claims: 2 })
    const { lease: own } = await lease(store)
    const claim = (key: string) => store.claim({ lease: own, claims: [{ key }] })
    const first = await claim('a')
    if (first.outcome === 'busy') throw new Error('busy')
    const release = { lease: own, keys: ['a'], token: first.token, request: 'r' }
    for (let at = 0; at < 5; at++) await store.release(release)
    await claim('b')
    await claim('c')
    await expect(claim('d')).rejects.toMatchObject({ code: 'limit-exceeded' })
  })

  it('counts a repeated request once', async () => {
    const { as, access } = await open()
    const { store } = await as('bob', ['claim:'], { claims: 5 })
    const grant = { holder: 'b', ttl: 60_000, claims: [{ key: 'a' }], request: 'r' }
    for (let at = 0; at < 3; at++) await store.grant(grant)
    expect(access.usage().get('bob')).toMatchObject({ leases: 1, claims: 1 })
  })
})

describe('access tokens that are read twice at the same time', () => {
  it('are not put back to how they were by the reading that began first', async () => {
    const inner: LeaseStore = memoryStore()
    const gate = new Gate()
    let isSlow = false
    const slow = changedStore(inner, {
      read: async (query) => {
        const reading = await inner.read(query)
        if (isSlow && 'prefix' in query) {
          isSlow = false
          await gate.opened
        }
        return reading as never
      },
    })
    const spec = (name: string) => ({ name, rights: [parseRight('all:')] })
    const book = await AccessTokens.open(slow, systemClock)
    const other = await AccessTokens.open(inner, systemClock)
    await other.create(spec('ann'))
    await vi.waitFor(() => expect(book.isEmpty).toBe(false))
    await other.revoke('ann', 'me')
    isSlow = true
    await vi.waitFor(() => expect(isSlow).toBe(false))
    const token = await book.create(spec('bob'))
    expect(book.isEmpty).toBe(false)
    const ended: unknown[] = []
    book.changed = (principal) => void ended.push(principal?.ended ?? 'everybody')
    gate.open()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(ended).toEqual([])
    expect(book.byToken(token).name).toBe('bob')
    book.close()
    other.close()
    await inner.close()
  })
})

describe('a watch of a lease that is looked up first', () => {
  it('is interrupted if the store can no longer watch by then', async () => {
    const clock = new TestClock()
    const inner = memoryStore({ clock })
    const closed = new LeaseholdError('closed', 'the store is closed')
    let isClosed = false
    const store = changedStore(inner, {
      watch: (target, observer) => {
        if (isClosed) throw closed
        return inner.watch(target, observer)
      },
    })
    const access = await Access.open({ store, limits: DEFAULT_LIMITS, audit: noAudit, clock })
    const { lease: own } = await lease(inner, ['jobs/1'])
    const rights = [parseRight('watch:jobs/')]
    const token = await access.tokens.create({ name: 'bob', rights })
    const bob = access.admit({ authorization: `Bearer ${token}` })
    isClosed = true
    const { notices } = hear(bob.store, { lease: own })
    await vi.waitFor(() => expect(notices).toEqual([{ type: 'interrupted', error: closed }]))
    access.close()
    await inner.close()
  })
})
