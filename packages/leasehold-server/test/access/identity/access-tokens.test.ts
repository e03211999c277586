import { memoryStore } from 'leasehold/memory'
import { LeaseholdError, type LeaseStore, type Observer } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import {
  type AccessTokenSpec,
  AccessTokens,
  type Principal,
  parseRight,
} from '../../../src/access/index.ts'
import { changedStore } from '../../setup/changed-store.ts'
import { hear, lease, open, refused } from '../scene.ts'

describe('a token', () => {
  it('is not a certificate with two names, nor one that two tokens name', async () => {
    const { access } = await open()
    const rights = [{ verbs: ['read'] as const, prefix: '' }]
    await access.tokens.create({ name: 'ann', rights, certificate: 'ann.example' })
    const certificate = ['ann.example', 'eve.example']
    expect(() => access.admit({ certificate })).toThrowError(
      /2 common names \("ann.example", "eve.example"\): use a certificate with one/,
    )
    expect(() => access.admit({ certificate: certificate.toReversed() })).toThrowError(
      refused('unauthenticated'),
    )
    const second = { name: 'bob', rights, certificate: 'ann.example' }
    await expect(access.tokens.create(second)).rejects.toThrowError(/already belongs to "ann"/)
    await expect(access.tokens.create({ ...second, certificate: '' })).rejects.toThrowError(/empty/)
    await access.tokens.revoke('ann', 'root')
    await access.tokens.create(second)
    expect(access.admit({ certificate: 'ann.example' }).principal.name).toBe('bob')
  })

  it('that two servers created for one certificate at the same time admits nobody', async () => {
    const { store, access, clock } = await open()
    const rights = [{ verbs: ['read'] as const, prefix: '' }]
    const other = await AccessTokens.open(store, clock)
    await Promise.all([
      access.tokens.create({ name: 'ann', rights, certificate: 'c' }),
      other.create({ name: 'bob', rights, certificate: 'c' }),
    ])
    await clock.advance(10)
    expect(() => access.admit({ certificate: 'c' })).toThrowError(/both "ann" and "bob"/)
  })

  it('is changed for connected clients when its entry is changed', async () => {
    const { access, as, store, clock } = await open()
    const ann = await as('ann', ['read,watch:'])
    const key = 'leasehold/tokens/ann'
    const { lease: id, token, value } = (await store.read({ key })).claims[0]!
    const { notices } = hear(ann.store, { prefix: 'jobs/' })
    const stored = { ...JSON.parse(value!), rights: ['read:jobs/'], quota: { callsPerSecond: 1 } }
    await store.update({ lease: id, key, token, value: JSON.stringify(stored) })
    await clock.advance(10)
    expect(notices.at(-1)).toMatchObject({ type: 'interrupted', error: { code: 'forbidden' } })
    await ann.store.read({ key: 'jobs/1' })
    await expect(ann.store.read({ key: 'jobs/1' })).rejects.toThrowError(/1 calls a second/)
    expect(access.tokens.list()[0]?.rights).toEqual([{ verbs: ['read'], prefix: 'jobs/' }])
  })

  it('with an invalid entry admits nobody, and does not hide that others were revoked', async () => {
    const { access, as, store, clock } = await open()
    const ann = await as('ann', ['all:'])
    await lease(store, ['leasehold/tokens/odd'])
    const claims = [{ key: 'leasehold/tokens/later', value: '{"rights":["fly:"]}' }]
    await store.grant({ holder: 'leasehold', ttl: Infinity, claims })
    await clock.advance(10)
    expect(() => access.admit({})).toThrowError(refused('unauthenticated'))
    await store.revoke({ target: { key: 'leasehold/tokens/odd' } })
    await clock.advance(10)
    // A valid and an invalid one count as two.
    expect(() => access.admit({})).toThrowError(refused('unauthenticated'))
    await store.revoke({ target: { key: 'leasehold/tokens/ann' } })
    await clock.advance(10)
    expect(ann.principal.ended).toMatch(/revoked/)
    expect(() => access.admit({})).toThrowError(refused('unauthenticated'))
  })
})

const RIGHTS = [parseRight('read:')]

/** Access tokens on a store that can fail, with a watch that the test can notify. */
async function scene() {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const state = { reads: 0, watches: 0, closed: 0, tell: (() => {}) as Observer }
  const faults: { read?: Error; revoke?: Error } = {}
  const store = changedStore(inner, {
    read: (async (query: never) => {
      state.reads++
      if (faults.read) throw faults.read
      return inner.read(query)
    }) as LeaseStore['read'],
    revoke: async (request) => {
      if (faults.revoke) throw faults.revoke
      return inner.revoke(request)
    },
    watch: (target, observer) => {
      state.watches++
      state.tell = observer
      const watch = inner.watch(target, observer)
      return {
        close: () => {
          state.closed++
          watch.close()
        },
      }
    },
  })
  const book = await AccessTokens.open(store, clock)
  const changes: (Principal | undefined)[] = []
  book.changed = (principal) => void changes.push(principal)
  const create = (name: string, more: Partial<AccessTokenSpec> = {}) =>
    book.create({ name, rights: RIGHTS, ...more })
  return { clock, inner, book, state, faults, changes, create }
}

describe('the book of tokens', () => {
  it.each([
    [{ name: 'a'.repeat(65) }, /up to 64/],
    [{ name: '-a' }, /letters, digits and dashes/],
    [{ name: '' }, /letters/],
    [{ name: 5 }, /letters/],
    [{ name: 'a b' }, /letters/],
    [{ rights: [] }, /no rights/],
    [{ certificate: '' }, /certificate is empty/],
    [{ quota: { leases: -1 } }, /0 or more/],
    [{ quota: { leases: '1' } }, /0 or more/],
    [{ quota: { leases: Number.NaN } }, /0 or more/],
    [{ quota: { flights: 1 } }, /unknown/],
    [{ expiresAt: 1_000_000 }, /already have expired/],
    [{ expiresAt: Number.NaN }, /already have expired/],
  ])('refuses a token that makes no sense: %j', async (wrong, message) => {
    const { book, clock } = await scene()
    expect(clock.now()).toBe(1_000_000)
    const spec = { name: 'ann', rights: RIGHTS, ...wrong } as AccessTokenSpec
    await expect(book.create(spec)).rejects.toThrowError(message)
    await expect(book.create(spec)).rejects.toThrowError(refused('invalid-argument'))
    expect(book.isEmpty).toBe(true)
  })

  it('keeps the properties of a token', async () => {
    const { book, create, clock } = await scene()
    const quota = { leases: 0, claims: undefined }
    const name = `a${'-'.repeat(63)}`
    const expiresAt = clock.now() + 1
    await create(name, { quota, expiresAt, certificate: 'c' })
    const createdAt = clock.now()
    expect(book.list()).toEqual([
      { name, rights: RIGHTS, quota: { leases: 0 }, createdAt, expiresAt, certificate: 'c' },
    ])
    expect([book.quotaOf(name), book.quotaOf('x')]).toEqual([{ leases: 0 }, undefined])
    expect([typeof book.hashOf(name), book.hashOf('x')]).toEqual(['string', undefined])
    await expect(create(name)).rejects.toThrowError(refused('invalid-argument'))
    // The same certificate for the same name conflicts only with its own token.
    await expect(create(name, { certificate: 'c' })).rejects.toThrowError(
      /already has an access token/,
    )
    await create('bob')
    await create('cat')
    expect(book.list()).toHaveLength(3)
  })

  it('accepts a token only as it was written', async () => {
    const { book, create } = await scene()
    const token = await create('ann')
    expect(book.byToken(token).name).toBe('ann')
    for (const wrong of [`x${token}`, `${token}x`, `${token}\n`, token.slice(0, -1), undefined]) {
      expect(() => book.byToken(wrong)).toThrowError(refused('unauthenticated'))
    }
    expect(() => book.byToken(undefined)).toThrowError(/requires an access token/)
    expect(() => book.byToken(`lh_ann_${'A'.repeat(43)}`)).toThrowError(/unknown access token/)
    expect(() => book.byToken(`lh_bob_${'A'.repeat(43)}`)).toThrowError(/unknown access token/)
  })

  it('ends tokens when their time is over, the next one first, however long that takes', async () => {
    const { book, create, clock, changes } = await scene()
    const long = 2 ** 31 + 5000
    await create('late', { expiresAt: clock.now() + long, certificate: 'l' })
    await create('soon', { expiresAt: clock.now() + 1000, certificate: 's' })
    await create('never')
    changes.length = 0
    await clock.advance(999)
    expect(changes).toEqual([])
    await clock.advance(1)
    expect(changes).toMatchObject([{ name: 'soon', ended: expect.stringContaining('expired') }])
    expect(() => book.byCertificate('s')).toThrowError(/has expired/)
    await clock.advance(long - 1001)
    expect(book.byCertificate('l').name).toBe('late')
    await clock.advance(1)
    expect(changes).toMatchObject([{ name: 'soon' }, { name: 'late' }])
    expect(() => book.byCertificate('l')).toThrowError(refused('unauthenticated'))
    // An expired token does not block the next one for its certificate.
    const other = { name: 'l2', rights: RIGHTS, certificate: 'l' }
    await expect(book.create(other)).rejects.toThrowError(/already belongs to "late"/)
  })

  it('sets no timer that is longer than the maximum', async () => {
    const { create, clock } = await scene()
    const waits: number[] = []
    const timer = clock.timer.bind(clock)
    clock.timer = (time, run) => {
      waits.push(time - clock.now())
      return timer(time, run)
    }
    await create('late', { expiresAt: clock.now() + 2 ** 40 })
    expect(Math.max(...waits)).toBe(2 ** 31 - 1)
  })

  it('takes the certificate of the token that has not ended', async () => {
    const { book, create, clock, inner } = await scene()
    await create('old', { certificate: 'c', expiresAt: clock.now() + 1000 })
    const second = await AccessTokens.open(inner, clock)
    await clock.advance(1000)
    const { value } = (await inner.read({ key: 'leasehold/tokens/old' })).claims[0]!
    const stored = JSON.stringify({ ...JSON.parse(value!), expiresAt: undefined })
    const claims = [{ key: 'leasehold/tokens/young', value: stored }]
    await inner.grant({ holder: 'leasehold', ttl: Infinity, claims })
    await clock.advance(10)
    expect([book.byCertificate('c').name, second.byCertificate('c').name]).toEqual([
      ...['young', 'young'],
    ])
    expect(() => book.byCertificate('d')).toThrowError(/no access token has the certificate/)
  })

  it('reports changes, and nothing else', async () => {
    const { create, book, changes, inner, clock } = await scene()
    await create('ann')
    expect(changes).toEqual([undefined])
    await create('bob')
    expect(changes).toHaveLength(1)
    const key = 'leasehold/tokens/ann'
    const { lease: id, token, value } = (await inner.read({ key })).claims[0]!
    const ann = JSON.parse(value!)
    const update = async (more: object) => {
      const changed = JSON.stringify({ ...ann, ...more })
      await inner.update({ lease: id, key, token, value: changed })
      await clock.advance(10)
    }
    await update({ createdAt: 5 })
    expect(changes).toHaveLength(1)
    await update({ quota: { leases: 1 } })
    expect(changes.at(-1)).toMatchObject({ name: 'ann', quota: { leases: 1 } })
    await update({ quota: { leases: 1 }, rights: ['watch:'] })
    expect(changes.at(-1)?.rights).toEqual([parseRight('watch:')])
    await update({ quota: undefined, rights: ['watch:'] })
    expect([changes.length, changes.at(-1)?.quota]).toEqual([4, {}])
    expect(await book.revoke('ann', 'root')).toBe(true)
    expect(changes.at(-1)).toMatchObject({ name: 'ann', ended: 'its access token was revoked' })
    expect(await book.revoke('ann', 'root')).toBe(false)
    const { tenures } = await inner.read({ history: key })
    expect(tenures[0]?.end).toMatchObject({ by: 'root', why: 'access token revoked' })
  })

  it('makes a change although that disconnects it, and reports any other failure', async () => {
    const { create, book, faults } = await scene()
    faults.read = new LeaseholdError('unauthenticated', 'this server now requires an access token')
    expect(await create('ann')).toMatch(/^lh_ann_/)
    faults.read = new Error('odd')
    await expect(create('bob')).rejects.toThrowError('odd')
    delete faults.read
    await create('cat')
    faults.revoke = new LeaseholdError('closed', 'closed')
    await expect(book.revoke('cat', 'root')).rejects.toThrowError(refused('closed'))
    faults.revoke = new LeaseholdError('lease-ended', 'ended')
    expect(await book.revoke('cat', 'root')).toBe(true)
  })

  it('reads again a second after its watch broke, and until the store answers', async () => {
    const { state, clock, faults, book, inner } = await scene()
    expect([state.reads, state.watches]).toEqual([1, 1])
    const old = state.tell
    old({ type: 'interrupted', error: new LeaseholdError('closed', 'x') })
    old({ type: 'interrupted', error: new LeaseholdError('closed', 'x') })
    await clock.advance(999)
    expect(state.reads).toBe(1)
    faults.read = new Error('away')
    await clock.advance(1)
    expect([state.reads, state.watches]).toEqual([2, 1])
    await clock.advance(999)
    expect(state.reads).toBe(2)
    delete faults.read
    await clock.advance(1)
    expect([state.reads, state.watches]).toEqual([3, 2])
    // Notices of the old watch do not count any more.
    old({ type: 'compacted', revision: 1 } as never)
    await clock.advance(0)
    expect(state.reads).toBe(3)
    await lease(inner, ['leasehold/tokens/odd'])
    await clock.advance(0)
    expect([state.reads, book.isEmpty]).toEqual([4, false])
  })

  it('has one watch open at the store, however often the tokens change', async () => {
    const { state, clock, create, inner } = await scene()
    await create('ann')
    await clock.advance(10)
    // Another server makes one.
    await lease(inner, ['leasehold/tokens/odd'])
    await clock.advance(10)
    expect(state.watches).toBeGreaterThan(2)
    expect(state.watches - state.closed).toBe(1)
  })

  it('does nothing more after its close', async () => {
    const { state, clock, book, create, changes, faults } = await scene()
    await create('ann', { expiresAt: clock.now() + 5000 })
    await clock.advance(10)
    const { reads } = state
    changes.length = 0
    state.tell({ type: 'interrupted', error: new LeaseholdError('closed', 'x') })
    faults.read = new Error('away')
    await clock.advance(1000)
    expect(state.reads).toBe(reads + 1)
    book.close()
    await clock.advance(60_000)
    expect([state.reads, changes]).toEqual([reads + 1, []])
    const second = await scene()
    second.book.close()
    expect(second.state.closed).toBe(1)
  })

  it('reads all of many tokens', async () => {
    const { create, inner, clock } = await scene()
    await create('first')
    const { value } = (await inner.read({ key: 'leasehold/tokens/first' })).claims[0]!
    const claims = (at: number) => [{ key: `leasehold/tokens/t${at}`, value: value! }]
    const spec = { holder: 'leasehold', ttl: Infinity }
    for (let at = 0; at < 1100; at++) await inner.grant({ ...spec, claims: claims(at) })
    const book = await AccessTokens.open(inner, clock)
    expect(book.list()).toHaveLength(1101)
  })
})
