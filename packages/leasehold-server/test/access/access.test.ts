import { DEFAULT_LIMITS, type Granted } from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import { hear, lease, open, refused } from './scene.ts'

describe('a server without tokens', () => {
  it('allows everything to all clients, and records ends by force', async () => {
    const { access, store, entries } = await open()
    const { store: all } = access.admit({})
    await lease(store, ['jobs/1'])
    await all.revoke({ target: { key: 'jobs/1' }, by: 'ann', why: 'stuck' })
    expect(entries).toEqual([
      { action: 'revoke', by: 'ann', target: { key: 'jobs/1' }, why: 'stuck', outcome: 'done' },
    ])
  })

  it('requires a token from all clients, even connected ones, as soon as one exists', async () => {
    const { access, token } = await open()
    const admission = access.admit({})
    const ended: unknown[] = []
    admission.ended = (error) => ended.push(error)
    await token('ann', ['all:'])
    expect(ended).toEqual([refused('unauthenticated')])
    expect(() => access.admit({})).toThrowError(/requires an access token/)
  })
})

describe('a token', () => {
  it('is accepted as it was given, and in no other form', async () => {
    const { access, token } = await open()
    const text = await token('ann', ['all:'])
    expect(text).toMatch(/^lh_ann_.{43}$/)
    expect(access.admit({ authorization: `Bearer ${text}` }).principal.name).toBe('ann')
    expect(access.admit({ authorization: `bearer ${text}` }).principal.name).toBe('ann')
    const wrong = [text.slice(0, -1), `${text}x`, text.replace('ann', 'bob'), 'lh_ann_', '', 'x y']
    for (const other of [...wrong.map((each) => `Bearer ${each}`), text, 'Basic abc']) {
      expect(() => access.admit({ authorization: other })).toThrowError(
        expect.objectContaining({ code: 'unauthenticated' }),
      )
    }
  })

  it('is kept as a hash only', async () => {
    const { store, token } = await open()
    const text = await token('ann', ['all:'])
    const { claims } = await store.read({ key: 'leasehold/tokens/ann' })
    expect(claims[0]!.value).not.toContain(text.slice(7, 30))
  })

  it('disconnects its users when it is revoked, and not the others', async () => {
    const { access, as } = await open()
    const [ann, bob] = [await as('ann', ['all:']), await as('bob', ['all:'])]
    const ended: string[] = []
    ann.ended = () => ended.push('ann')
    bob.ended = () => ended.push('bob')
    expect(await access.tokens.revoke('ann', 'root')).toBe(true)
    expect(await access.tokens.revoke('ann', 'root')).toBe(false)
    expect(ended).toEqual(['ann'])
    await expect(lease(ann.store, ['k'])).rejects.toThrowError(/token was revoked/)
    await lease(bob.store, ['k'])
  })

  it('ends automatically when its time is over, even for connected clients', async () => {
    const { access, clock } = await open()
    await access.tokens.create({ name: 'root', rights: [{ verbs: ['admin'], prefix: '' }] })
    const expiresAt = clock.now() + 60_000
    const rights = [{ verbs: ['claim'] as const, prefix: '' }]
    const text = await access.tokens.create({ name: 'brief', rights, expiresAt })
    const brief = access.admit({ authorization: `Bearer ${text}` })
    let ended = false
    brief.ended = () => {
      ended = true
    }
    await clock.advance(59_000)
    await lease(brief.store, ['k'])
    await clock.advance(1001)
    expect(ended).toBe(true)
    await expect(lease(brief.store, ['l'])).rejects.toThrowError(/has expired/)
    expect(() => access.admit({ authorization: `Bearer ${text}` })).toThrowError(/has expired/)
  })

  it('reaches a second server on the same store, and its end too', async () => {
    const first = await open()
    const { Access } = await import('../../src/access/index.ts')
    const { store, clock } = first
    const second = await Access.open({
      ...{ store, clock, limits: DEFAULT_LIMITS },
      audit: { record: () => {} },
    })
    const text = await first.token('ann', ['all:'])
    await clock.advance(10)
    expect(second.admit({ authorization: `Bearer ${text}` }).principal.name).toBe('ann')
    await first.access.tokens.revoke('ann', 'root')
    await clock.advance(10)
    expect(second.tokens.isEmpty).toBe(true)
  })

  it('can be a client certificate', async () => {
    const { access } = await open()
    const rights = [{ verbs: ['read'] as const, prefix: '' }]
    await access.tokens.create({ name: 'ann', rights, certificate: 'ann.example' })
    expect(access.admit({ certificate: 'ann.example' }).principal.name).toBe('ann')
    expect(() => access.admit({ certificate: 'eve.example' })).toThrowError(
      /no access token has the certificate/,
    )
  })

  it.each([
    [{ name: 'a b', rights: [] }, /letters, digits and dashes/],
    [{ name: 'ann', rights: [] }, /no rights/],
    [
      { name: 'ann', rights: [{ verbs: ['read'], prefix: '' }], expiresAt: 1 },
      /already have expired/,
    ],
    [{ name: 'ann', rights: [{ verbs: ['read'], prefix: '' }], quota: { x: 1 } }, /quota "x"/],
  ])('is refused if it is invalid: %j', async (spec, message) => {
    const { access } = await open()
    await expect(access.tokens.create(spec as never)).rejects.toThrowError(message)
  })

  it('is one for each name', async () => {
    const { token } = await open()
    await token('ann', ['all:'])
    await expect(token('ann', ['all:'])).rejects.toThrowError(/already has an access token/)
  })
})

describe('rights', () => {
  it('are needed for every key of a call, which does nothing if one is missing', async () => {
    const { as, store } = await open()
    const { store: mine } = await as('ann', ['claim:jobs/'])
    await expect(lease(mine, ['jobs/1', 'other'])).rejects.toThrowError(refused('forbidden'))
    expect((await store.read({ key: 'jobs/1' })).count).toBe(0)
    const { lease: own } = await lease(mine, ['jobs/1'])
    await expect(mine.claim({ lease: own, claims: [{ key: 'other' }] })).rejects.toThrowError(
      refused('forbidden'),
    )
    expect((await mine.claim({ lease: own, claims: [{ key: 'jobs/2' }] })).outcome).toBe('claimed')
  })

  it('to read and to watch are for prefixes too, and a wider one is refused', async () => {
    const { as } = await open()
    const { store: mine } = await as('ann', ['read,watch:jobs/'])
    await mine.read({ key: 'jobs/1' })
    await mine.read({ prefix: 'jobs/' })
    await mine.read({ history: 'jobs/1' })
    for (const query of [
      { prefix: '' },
      { prefix: 'job' },
      { key: 'x' },
      { history: 'x' },
      { leases: true as const },
    ]) {
      await expect(mine.read(query)).rejects.toThrowError(refused('forbidden'))
    }
    hear(mine, { prefix: 'jobs/' }).watch.close()
    expect(() => mine.watch({ prefix: '' }, () => {})).toThrowError(refused('forbidden'))
  })

  it('do not show the tokens, nor let anyone make them', async () => {
    const { as, store } = await open()
    const { store: mine } = await as('ann', ['claim,renew,release,read,watch:'])
    await expect(mine.read({ prefix: 'leasehold/' })).rejects.toThrowError(refused('forbidden'))
    await expect(mine.read({ key: 'leasehold/tokens/ann' })).rejects.toThrowError(
      refused('forbidden'),
    )
    await expect(mine.read({ history: 'leasehold/tokens/ann' })).rejects.toThrowError(
      refused('forbidden'),
    )
    await expect(lease(mine, ['leasehold/tokens/eve'])).rejects.toThrowError(refused('forbidden'))
    expect(() => mine.watch({ prefix: 'leasehold/tok' }, () => {})).toThrowError(
      refused('forbidden'),
    )
    const token = (await store.read({ prefix: 'leasehold/' })).keys[0]!.claims[0]!.lease
    await expect(mine.read({ lease: token })).rejects.toThrowError(refused('forbidden'))
  })

  it("to read all keys show all but the server's own, page by page and as they change", async () => {
    const { as, store, clock, access } = await open()
    const { store: mine } = await as('wall', ['read,watch:'])
    await as('ann', ['all:'])
    for (const key of ['a', 'leasehol', 'leasehold0', 'z']) await lease(store, [key])
    const all = await mine.read({ prefix: '' })
    expect(all.keys.map(({ key }) => key)).toEqual(['a', 'leasehol', 'leasehold0', 'z'])
    const seen: string[] = []
    let after: string | undefined
    for (let more = true; more; ) {
      const page = await mine.read({ prefix: '', after, limit: 1 })
      seen.push(...page.keys.map(({ key }) => key))
      more = page.more
      after = page.keys.at(-1)?.key ?? after
      expect(seen.length).toBeLessThan(10)
    }
    expect(seen).toEqual(['a', 'leasehol', 'leasehold0', 'z'])
    expect((await mine.read({ leases: true })).leases.length).toBeGreaterThan(4)
    const { notices } = hear(mine, { prefix: 'l' })
    await clock.advance(10)
    await access.tokens.revoke('ann', 'root')
    await lease(store, ['leasehold1'])
    await clock.advance(10)
    const events = notices.flatMap((notice) => (notice.type === 'events' ? notice.events : []))
    expect(new Set(events.map(({ key }) => key))).toEqual(new Set(['leasehold1']))
  })

  it('to end the leases of others need admin and a reason, and are recorded with the true name', async () => {
    const { as, entries, store } = await open()
    const worker = await as('worker', ['claim:jobs/'])
    const boss = await as('boss', ['admin,read:jobs/'])
    const held = await lease(worker.store, ['jobs/1'])
    const target = { key: 'jobs/1' }
    await expect(worker.store.revoke({ target, why: 'x' })).rejects.toThrowError(
      refused('forbidden'),
    )
    await expect(boss.store.revoke({ target })).rejects.toThrowError(/needs a reason/)
    await expect(boss.store.revoke({ target, why: ' ' })).rejects.toThrowError(/needs a reason/)
    await boss.store.revoke({ target, by: 'somebody else', why: 'stuck for days' })
    expect((await store.read(target)).count).toBe(0)
    expect(entries.map(({ by, outcome }) => `${by} ${outcome}`)).toEqual([
      'worker forbidden',
      'boss invalid-argument',
      'boss invalid-argument',
      'boss done',
    ])
    expect((await store.read({ history: 'jobs/1' })).tenures[0]?.end.by).toBe('boss')
    await worker.store.revoke({ target: { lease: held.lease } })
    expect(entries).toHaveLength(4)
  })

  it('to end a lease by force cover all of its keys', async () => {
    const { as, store } = await open()
    const boss = await as('boss', ['admin:jobs/'])
    const { lease: both } = await lease(store, ['jobs/1', 'other'])
    const target = { lease: both }
    await expect(boss.store.revoke({ target, why: 'x' })).rejects.toThrowError(refused('forbidden'))
    const { lease: one } = await lease(store, ['jobs/2'])
    await boss.store.revoke({ target: { lease: one }, why: 'x' })
    const { lease: none } = await lease(store)
    await expect(boss.store.revoke({ target: { lease: none }, why: 'x' })).rejects.toThrowError(
      refused('forbidden'),
    )
  })

  it('that were lost end the watches', async () => {
    const { access, as } = await open()
    const ann = await as('ann', ['watch:jobs/'])
    const { notices } = hear(ann.store, { prefix: 'jobs/' })
    ann.principal.rights = []
    access.tokens.changed(ann.principal)
    expect(notices.at(-1)).toMatchObject({ type: 'interrupted', error: { code: 'forbidden' } })
  })
})

describe('a lease', () => {
  it('is used with the secret that its holder got, and shown to others without', async () => {
    const { as, store } = await open()
    const ann = await as('ann', ['claim,read:'])
    const { lease: mine, token } = await lease(ann.store, ['k'])
    const [plain, secret] = mine.split('~')
    expect(secret).toHaveLength(22)
    expect((await store.read({ key: 'k' })).claims[0]?.lease).toBe(plain)
    expect(await ann.store.renew([mine])).toEqual({ lost: [], capped: [] })
    await ann.store.update({ lease: mine, key: 'k', token, value: 'v' })
    await ann.store.release({ lease: mine, keys: ['k'], token })
  })

  it('cannot be used by others, not even by clients that may claim the same keys', async () => {
    const { as } = await open()
    const ann = await as('ann', ['claim:jobs/'])
    const eve = await as('eve', ['claim,read,watch:jobs/'])
    const { lease: mine, token } = await lease(ann.store, ['jobs/1'])
    const plain = mine.split('~')[0]!
    for (const guess of [plain, `${plain}~`, `${plain}~${'A'.repeat(22)}`]) {
      const calls = [
        () => eve.store.renew([guess]),
        () => eve.store.release({ lease: guess, keys: ['jobs/1'], token }),
        () => eve.store.update({ lease: guess, key: 'jobs/1', token, value: 'x' }),
        () => eve.store.claim({ lease: guess, claims: [{ key: 'jobs/2' }] }),
        () => eve.store.revoke({ target: { lease: guess }, why: 'x' }),
      ]
      for (const call of calls) {
        await expect(call()).rejects.toThrowError(refused('forbidden'))
      }
    }
  })

  it('can be renewed and released by clients that have that right on all its keys', async () => {
    const { as } = await open()
    const ann = await as('ann', ['claim:'])
    const helper = await as('helper', ['renew,release:sessions/'])
    const { lease: mine, token } = await lease(ann.store, ['sessions/1'])
    const plain = mine.split('~')[0]!
    expect((await helper.store.renew([plain])).lost).toEqual([])
    await helper.store.release({ lease: plain, keys: ['sessions/1'], token })
    const none = await lease(ann.store)
    await expect(helper.store.renew([none.lease.split('~')[0]!])).rejects.toThrowError(
      refused('forbidden'),
    )
    const both = await lease(ann.store, ['sessions/2', 'other'])
    await expect(helper.store.renew([both.lease.split('~')[0]!])).rejects.toThrowError(
      refused('forbidden'),
    )
  })

  it('is not given to another client that repeats the request', async () => {
    const { as } = await open()
    const [ann, eve] = [await as('ann', ['claim:']), await as('eve', ['claim:'])]
    const request = { holder: 'x', ttl: 60_000, request: 'one' }
    const first = await ann.store.grant(request)
    expect(await ann.store.grant(request)).toEqual(first)
    expect(await eve.store.grant(request)).not.toMatchObject({ lease: (first as Granted).lease })
  })

  it('that has ended is reported as lost by the requested id', async () => {
    const { as } = await open()
    const ann = await as('ann', ['claim:'])
    const { lease: mine } = await lease(ann.store)
    await ann.store.revoke({ target: { lease: mine } })
    expect((await ann.store.renew([mine])).lost).toMatchObject([{ lease: mine }])
  })
})

describe('a quota', () => {
  it('bounds leases and claims, and leaves room again when they have ended', async () => {
    const { as, clock } = await open()
    const { store: mine } = await as('ann', ['claim:'], { leases: 2, claims: 3 })
    await lease(mine, ['a', 'b'])
    const second = await lease(mine, ['c'])
    await expect(lease(mine)).rejects.toThrowError(/at most 2 leases at a time/)
    const claims = [{ key: 'd' }]
    await expect(mine.claim({ lease: second.lease, claims })).rejects.toThrowError(
      /at most 3 claims at a time/,
    )
    await mine.release({ lease: second.lease, keys: ['c'], token: second.token })
    expect((await mine.claim({ lease: second.lease, claims })).outcome).toBe('claimed')
    // They end automatically, without a notification.
    await clock.advance(61_000)
    await lease(mine, ['a', 'b', 'c'])
  })

  it('bounds calls a second, watches, values and ttls', async () => {
    const { as, clock } = await open()
    const { store: quick } = await as('quick', ['claim,read:'], { callsPerSecond: 3 })
    for (let i = 0; i < 3; i++) await quick.read({ key: 'k' })
    await expect(quick.read({ key: 'k' })).rejects.toThrowError(/at most 3 calls a second/)
    await clock.advance(1000)
    await quick.read({ key: 'k' })
    const { store: small } = await as('small', ['claim,watch:'], {
      watches: 1,
      valueBytes: 4,
      ttlMax: 60_000,
      ttlMin: 1000,
    })
    const first = small.watch({ prefix: 'jobs' }, () => {})
    expect(() => small.watch({ prefix: 'jobs' }, () => {})).toThrowError(/1 watches/)
    first.close()
    small.watch({ prefix: 'jobs' }, () => {})
    const claims = [{ key: 'k', value: 'äää' }]
    await expect(small.grant({ holder: 'x', ttl: 5000, claims })).rejects.toThrowError(/4 bytes/)
    await expect(small.grant({ holder: 'x', ttl: 500 })).rejects.toThrowError(/ttls of 1s and more/)
    await expect(small.grant({ holder: 'x', ttl: Infinity })).rejects.toThrowError(/ttls up to 1m/)
  })
})
