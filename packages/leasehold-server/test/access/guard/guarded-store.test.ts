import { memoryStore } from 'leasehold/memory'
import { DEFAULT_LIMITS, type Granted, LeaseholdError, type LeaseStore } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { Access, type AuditEntry, parseRight, type Quota } from '../../../src/access/index.ts'
import { changedStore, Gate } from '../../setup/changed-store.ts'
import { hear, lease, open, refused } from '../scene.ts'

const SPEC = { holder: 'h', ttl: 60_000 }
const plainOf = (signed: string) => signed.split('~')[0]!

/** A server that counts and can delay the calls to its store. */
async function scene(changes: (inner: LeaseStore) => Partial<LeaseStore> = () => ({})) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const entries: AuditEntry[] = []
  const audit = { record: (entry: AuditEntry) => void entries.push(entry) }
  const store = changedStore(inner, changes(inner))
  const access = await Access.open({ store, limits: DEFAULT_LIMITS, audit, clock })
  const as = async (name: string, rights: string, quota?: Quota, address?: string) => {
    const spec = { name, rights: rights.split(' ').map(parseRight), quota }
    const authorization = `Bearer ${await access.tokens.create(spec)}`
    return access.admit({ authorization, address })
  }
  return { clock, inner, access, as, entries }
}

describe('a grant', () => {
  it('leaves room for the label of its owner', async () => {
    const { as, store } = await open()
    const { store: mine } = await as('ann', ['claim:'])
    const labels = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`l${at}`, 'x']))
    const most = DEFAULT_LIMITS.labels
    await expect(mine.grant({ ...SPEC, labels: labels(most) })).rejects.toThrowError(
      expect.objectContaining({ code: expect.stringMatching(/limit|argument/) }),
    )
    const given = (await mine.grant({ ...SPEC, labels: labels(most - 1) })) as Granted
    const kept = (await store.read({ lease: plainOf(given.lease) })).lease!.labels
    expect(Object.keys(kept)).toHaveLength(most)
  })

  it('is tagged with its request only for principals with a quota of leases or claims', async () => {
    const { as, store } = await open()
    const label = async (name: string, quota: Quota, request?: string) => {
      const { store: mine } = await as(name, ['claim:'], quota)
      const given = (await mine.grant({ ...SPEC, request })) as Granted
      return (await store.read({ lease: plainOf(given.lease) })).lease!.labels[
        'leasehold/principal'
      ]
    }
    expect(await label('a', { leases: 2 }, 'r')).toMatch(/^a [\w-]{22}$/)
    expect(await label('b', { claims: 2 }, 'r')).toMatch(/^b [\w-]{22}$/)
    expect(await label('c', { watches: 2 }, 'r')).toBe('c')
    expect(await label('d', { leases: 2 })).toBe('d')
  })

  it('under a lease of one’s own is made under its plain id, and hides why that ended', async () => {
    const { as, store } = await open()
    const { store: mine } = await as('ann', ['claim,renew:jobs/'])
    const parent = await lease(mine)
    const child = (await mine.grant({ ...SPEC, parent: parent.lease })) as Granted
    const found = await store.read({ lease: plainOf(child.lease) })
    expect(found.lease?.parent).toBe(plainOf(parent.lease))
    const other = await lease(store, ['secret/1'])
    await store.revoke({ target: { lease: other.lease }, by: 'boss', why: 'merger' })
    const refusal = await mine.grant({ ...SPEC, parent: other.lease }).catch((error) => error)
    expect(refusal).toMatchObject({ code: 'lease-ended', reason: 'revoked' })
    expect([refusal.by, refusal.why]).toEqual([undefined, undefined])
  })

  it('shows the value of the claim ahead only to clients that may read it', async () => {
    const { as, store } = await open()
    const claims = [{ key: 'jobs/1', value: 'secret' }]
    await store.grant({ ...SPEC, claims })
    const blind = await as('blind', ['claim:'])
    const reader = await as('reader', ['claim,read:jobs/'])
    const asked = { ...SPEC, claims: [{ key: 'jobs/1' }] }
    expect(JSON.stringify(await blind.store.grant(asked))).not.toContain('secret')
    expect(JSON.stringify(await blind.store.grant({ ...asked, ifFree: true }))).not.toContain(
      'secret',
    )
    expect(JSON.stringify(await reader.store.grant(asked))).toContain('secret')
    const { lease: own } = await lease(blind.store)
    const claimed = await blind.store.claim({ lease: own, claims: asked.claims })
    expect(claimed).toMatchObject({ ahead: [{ key: 'jobs/1', first: { holder: 'h' } }] })
    expect(JSON.stringify(claimed)).not.toContain('secret')
  })
})

describe('a renewal', () => {
  it('answers with the requested ids, and hides reasons from clients that may not see them', async () => {
    const { as, store } = await open()
    const ann = await as('ann', ['claim:'])
    const helper = await as('helper', ['renew:jobs/'])
    const own = await lease(ann.store, ['jobs/1'])
    const plain = plainOf(own.lease)
    const capped = (await ann.store.grant({ ...SPEC, ttl: 30_000, maxLife: 30_000 })) as Granted
    expect((await ann.store.renew([own.lease, capped.lease])).capped).toMatchObject([
      { lease: capped.lease },
    ])
    expect(await helper.store.renew([plain])).toEqual({ lost: [], capped: [] })
    await store.revoke({ target: { lease: plain }, by: 'boss', why: 'merger' })
    expect((await ann.store.renew([own.lease])).lost).toMatchObject([
      { lease: own.lease, end: { by: 'boss', why: 'merger' } },
    ])
    const { lost } = await helper.store.renew([plain])
    expect(lost).toEqual([{ lease: plain, end: { reason: 'revoked' } }])
  })

  it('of a principal that leaves while a lease is looked up renews nothing', async () => {
    const gate = new Gate()
    let renewals = 0
    const { as, inner } = await scene((inner) => ({
      read: (async (query: { lease?: string }) => {
        if (query.lease !== undefined) await gate.opened
        return inner.read(query as never)
      }) as never,
      renew: async (leases) => {
        renewals++
        return inner.renew(leases)
      },
    }))
    const helper = await as('helper', 'renew:jobs/')
    const { lease: other } = await lease(inner, ['jobs/1'])
    const renewing = helper.store.renew([other])
    helper.leave()
    gate.open()
    await expect(renewing).rejects.toThrowError(refused('closed'))
    expect(renewals).toBe(0)
  })

  it('frees the quota of lost leases', async () => {
    const { as, store, access } = await open()
    const ann = await as('ann', ['claim:'], { leases: 2 })
    const own = await lease(ann.store)
    await store.revoke({ target: { lease: plainOf(own.lease) } })
    await ann.store.renew([own.lease])
    expect(access.usage().get('ann')?.leases).toBe(0)
  })
})

describe('a revocation', () => {
  it('of an own lease needs no reason, may name a person, and is not recorded', async () => {
    const { as, store, entries } = await open()
    const ann = await as('ann', ['claim:'])
    const ends: unknown[] = []
    for (const by of [undefined, 'a job']) {
      const own = await lease(ann.store, ['k'])
      await ann.store.revoke({ target: { lease: own.lease }, ...(by && { by }) })
      ends.push((await store.read({ history: 'k' })).tenures[0]?.end.by)
    }
    expect(ends).toEqual(['ann', 'a job'])
    expect(entries).toEqual([])
    const parent = await lease(ann.store)
    const child = (await ann.store.grant({ ...SPEC, parent: parent.lease })) as Granted
    expect((await ann.store.revoke({ target: { parent: parent.lease } })).leases).toBe(1)
    expect((await store.read({ lease: plainOf(child.lease) })).lease).toBeUndefined()
    expect((await store.read({ lease: plainOf(parent.lease) })).lease).toBeDefined()
  })

  it('by force is recorded with its address and its outcome', async () => {
    let fault: Error | undefined
    const { as, inner, entries } = await scene((inner) => ({
      revoke: async (request) => {
        if (fault) throw fault
        return inner.revoke(request)
      },
    }))
    const boss = await as('boss', 'admin:jobs/', undefined, '192.0.2.1')
    const { lease: held } = await lease(inner, ['jobs/1'])
    const target = { lease: held }
    fault = new Error('odd')
    await expect(boss.store.revoke({ target, why: 'w' })).rejects.toBe(fault)
    fault = new LeaseholdError('storage-failed', 'full')
    await expect(boss.store.revoke({ target, why: 'w' })).rejects.toBe(fault)
    fault = undefined
    await boss.store.revoke({ target, why: 'w' })
    const entry = { action: 'revoke', by: 'boss', from: '192.0.2.1', target, why: 'w' }
    expect(entries).toEqual([
      { ...entry, outcome: 'unknown-outcome' },
      { ...entry, outcome: 'storage-failed' },
      { ...entry, outcome: 'done' },
    ])
  })

  it('frees the quota of ended leases', async () => {
    const { as } = await open()
    const ann = await as('ann', ['claim:'], { leases: 1 })
    const own = await lease(ann.store)
    await ann.store.revoke({ target: { lease: own.lease } })
    await lease(ann.store)
  })
})

describe('a reading of a lease', () => {
  it('shows the requested number of claims, without the owner', async () => {
    const { as, store } = await open()
    const made = await lease(store, ['jobs/1', 'jobs/2', 'jobs/3'])
    const reader = await as('reader', ['read:jobs/'])
    const all = await as('all', ['all:'])
    for (const { store: mine } of [reader, all]) {
      const two = await mine.read({ lease: made.lease, limit: 2 })
      expect(two.claims.map(({ key }) => key)).toEqual(['jobs/1', 'jobs/2'])
      expect((await mine.read({ lease: made.lease })).claims).toHaveLength(3)
    }
    const own = await lease(all.store)
    expect((await all.store.read({ lease: own.lease })).lease?.labels).toEqual({})
    await store.revoke({ target: { lease: made.lease }, by: 'boss', why: 'merger' })
    expect((await reader.store.read({ lease: made.lease })).end).toEqual({ reason: 'revoked' })
    expect((await all.store.read({ lease: made.lease })).end).toMatchObject({ why: 'merger' })
  })

  it('that is refused is recorded, and one that fails is not', async () => {
    const { as, inner, entries } = await scene()
    const { lease: other } = await lease(inner, ['secret/1'])
    const eve = await as('eve', 'read:jobs/', undefined, '::1')
    await expect(eve.store.read({ lease: other })).rejects.toThrowError(refused('forbidden'))
    expect(entries).toEqual([
      { action: 'read', by: 'eve', from: '::1', target: { lease: other }, outcome: 'forbidden' },
    ])
    await expect(
      eve.store.update({ lease: other, key: 'secret/1', token: 1, value: '' }),
    ).rejects.toThrowError(refused('forbidden'))
    expect(entries).toHaveLength(1)
  })
})

describe('a watch', () => {
  it('of a lease is opened by its plain id, known or looked up, and counts for the quota', async () => {
    const { as, store, clock, access } = await open()
    const ann = await as('ann', ['claim:'], { watches: 2 })
    const own = await lease(ann.store, ['k'])
    const first = hear(ann.store, { lease: own.lease })
    await clock.advance(0)
    expect(first.notices).toMatchObject([{ type: 'standing', claims: [{ key: 'k' }] }])
    const unknown = hear(ann.store, { lease: plainOf(own.lease) })
    expect(access.usage().get('ann')?.watches).toBe(2)
    expect(() => hear(ann.store, { prefix: '' })).toThrowError(refused('limit-exceeded'))
    await clock.advance(0)
    expect(unknown.notices).toMatchObject([{ type: 'interrupted', error: { code: 'forbidden' } }])
    expect(access.usage().get('ann')?.watches).toBe(1)
    await store.revoke({ target: { lease: plainOf(own.lease) } })
    await clock.advance(0)
    expect(first.notices.at(-1)?.type).toBe('gone')
    expect(access.usage().get('ann')?.watches).toBe(0)
  })

  it('is ended with the rights to it, and with the token; others are not', async () => {
    const { as, access, clock, store } = await open()
    const ann = await as('ann', ['watch,claim:'])
    const own = await lease(ann.store)
    const all = hear(ann.store, { prefix: '' })
    const jobs = hear(ann.store, { prefix: 'jobs/' })
    const one = hear(ann.store, { lease: own.lease })
    await clock.advance(0)
    ann.principal.rights = [parseRight('watch:jobs/')]
    access.tokens.changed(ann.principal)
    expect(all.notices.at(-1)).toMatchObject({ type: 'interrupted', error: { code: 'forbidden' } })
    await lease(store, ['jobs/1'])
    await clock.advance(0)
    expect([jobs.notices.at(-1)?.type, one.notices.at(-1)?.type]).toEqual(['events', 'standing'])
    ann.principal.ended = 'its access token was revoked'
    expect(() => hear(ann.store, { prefix: 'jobs/' })).toThrowError(refused('unauthenticated'))
    expect(() => ann.store.watch({ lease: own.lease }, () => {})).toThrowError(
      /"ann": its access token/,
    )
  })

  it('of all keys shows the server’s own only while its watcher may see them', async () => {
    const { as, store, clock } = await open()
    const ann = await as('ann', ['all:'])
    const { notices } = hear(ann.store, { prefix: 'l' })
    await clock.advance(0)
    await lease(store, ['leasehold/x'])
    await clock.advance(0)
    expect(JSON.stringify(notices)).toContain('leasehold/x')
    ann.principal.rights = [parseRight('watch:')]
    await lease(store, ['leasehold/y'])
    await clock.advance(0)
    expect(JSON.stringify(notices)).not.toContain('leasehold/y')
  })
})

describe('every call', () => {
  it('is refused if it is invalid, before it counts', async () => {
    const { as, access } = await open()
    const ann = await as('ann', ['all:'], { callsPerSecond: 1 })
    const calls: (() => unknown)[] = [
      () => ann.store.grant({ holder: '', ttl: 1000 }),
      () => ann.store.renew([5 as never]),
      () => ann.store.revoke({ target: {} as never }),
      () => ann.store.claim({ lease: 'l', claims: [] }),
      () => ann.store.release({ lease: 'l', keys: [], token: 1 }),
      () => ann.store.update({ lease: 'l', key: '', token: 1, value: '' }),
      () => ann.store.read({} as never),
      () => ann.store.watch({} as never, () => {}),
    ]
    for (const call of calls) {
      const error = await Promise.resolve()
        .then(call)
        .catch((each) => each)
      expect(error).toMatchObject({ code: 'invalid-argument' })
    }
    expect(access.usage().get('ann')?.calls).toBe(0)
    expect(ann.store.guarantees).toBeDefined()
  })

  it('has its own request id for each principal and operation', async () => {
    const requests: (string | undefined)[] = []
    const seen = (inner: LeaseStore, name: 'grant' | 'claim' | 'release' | 'update' | 'revoke') =>
      (async (request: { request?: string; holder?: string }) => {
        if (request.holder !== 'leasehold') requests.push(request.request)
        return inner[name](request as never)
      }) as never
    const { as } = await scene((inner) => ({
      ...{ grant: seen(inner, 'grant'), claim: seen(inner, 'claim') },
      ...{ release: seen(inner, 'release'), update: seen(inner, 'update') },
      revoke: seen(inner, 'revoke'),
    }))
    const use = async (store: LeaseStore, key: string, request?: string) => {
      const id = { ...(request && { request }) }
      const { lease: own } = (await store.grant({ ...SPEC, ...id })) as Granted
      const claimed = await store.claim({ lease: own, claims: [{ key }], ...id })
      const { token } = claimed as { token: number }
      await store.update({ lease: own, key, token, value: 'v', ...id })
      await store.release({ lease: own, keys: [key], token, ...id })
      await store.revoke({ target: { lease: own }, ...id })
    }
    await use((await as('ann', 'claim:')).store, 'a', 'r')
    await use((await as('bob', 'claim:')).store, 'b', 'r')
    expect(new Set(requests).size).toBe(10)
    expect(requests.every((each) => each !== undefined && each !== 'r')).toBe(true)
    requests.length = 0
    await use((await as('cat', 'claim:')).store, 'c')
    expect(requests).toEqual([undefined, undefined, undefined, undefined, undefined])
  })

  it('looks a lease up once if its secret was shown', async () => {
    const { as } = await open()
    const ann = await as('ann', ['claim:'])
    const eve = await as('eve', ['read:'])
    const { lease: own } = await lease(ann.store, ['k'])
    expect((await eve.store.read({ lease: own })).claims).toHaveLength(1)
    expect((await eve.store.renew([own])).lost).toEqual([])
  })
})
