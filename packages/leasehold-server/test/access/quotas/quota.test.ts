import fc from 'fast-check'
import { DEFAULT_LIMITS, type Granted, isLeaseholdError, type LeaseStore } from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import { Access, noAudit, type Quota } from '../../../src/access/index.ts'
import { lease, open, refused } from '../scene.ts'

/** A server with one principal, and a function that starts another server on the same store. */
async function scene(quota: Quota, secretsKey = Buffer.alloc(32, 7)) {
  const { store, clock, token } = await open()
  const text = await token('ann', ['all:'], quota)
  const start = async () => {
    const options = { store, clock, limits: DEFAULT_LIMITS, audit: noAudit, secretsKey }
    const access = await Access.open(options)
    const { store: own } = access.admit({ authorization: `Bearer ${text}` })
    return { access, store: own }
  }
  return { inner: store, clock, start, ...(await start()) }
}

/** How many leases of anybody but the server are alive, and how many claims they have. */
async function alive(store: LeaseStore): Promise<{ leases: number; claims: number }> {
  const { leases } = await store.read({ leases: true })
  const others = leases.filter(({ holder }) => holder !== 'leasehold')
  return { leases: others.length, claims: others.reduce((sum, { claims }) => sum + claims, 0) }
}

const granted = async (store: LeaseStore, keys: readonly string[] = [], request?: string) => {
  const claims = keys.map((key) => ({ key }))
  return (await store.grant({
    ...{ holder: 'me', ttl: 60_000, request },
    ...(claims.length > 0 && { claims }),
  })) as Granted
}

describe('a quota and a request id that is used again', () => {
  it('frees no lease by a revocation that was carried out before', async () => {
    const { inner, store } = await scene({ leases: 3 })
    const first = await granted(store)
    await store.revoke({ target: { lease: first.lease }, request: 'r' })
    for (let at = 0; at < 50; at++) {
      const next = await granted(store).catch(() => undefined)
      if (next) await store.revoke({ target: { lease: next.lease }, request: 'r' })
    }
    expect((await alive(inner)).leases).toBe(3)
  })

  it('frees no claim by a release that was carried out before', async () => {
    const { inner, store } = await scene({ claims: 4 })
    const first = await granted(store, ['first'])
    const done = { token: first.token, keys: ['first'], request: 'r' }
    await store.release({ lease: first.lease, ...done })
    for (let at = 0; at < 120; at++) {
      const next = await granted(store, [`k${at}`]).catch(() => undefined)
      if (next) await store.release({ lease: next.lease, ...done })
    }
    expect((await alive(inner)).claims).toBe(4)
  })

  it('charges nothing for a claim that is sent again', async () => {
    const { store } = await scene({ claims: 2 })
    const { lease: own } = await granted(store)
    const claim = { lease: own, claims: [{ key: 'a' }], request: 'r' }
    const first = await store.claim(claim)
    for (let at = 0; at < 5; at++) expect(await store.claim(claim)).toEqual(first)
    await store.claim({ lease: own, claims: [{ key: 'b' }] })
  })

  it('answers a repeated grant although there is no room, on any server', async () => {
    const { store, start } = await scene({ leases: 1, claims: 1 })
    const first = await granted(store, ['a'], 'r')
    expect(await granted(store, ['a'], 'r')).toEqual(first)
    expect(await granted((await start()).store, ['a'], 'r')).toEqual(first)
    await expect(granted(store, ['a'], 'other')).rejects.toThrowError(refused('limit-exceeded'))
  })

  it('answers a repeated claim although there is no room, on any server', async () => {
    const { store, start, inner } = await scene({ claims: 1 })
    const { lease: own } = await granted(store)
    const claim = { lease: own, claims: [{ key: 'a' }], request: 'r' }
    const first = await store.claim(claim)
    expect(await store.claim(claim)).toEqual(first)
    const second = await start()
    expect(await second.store.claim(claim)).toEqual(first)
    // The same keys in a new request are one claim more.
    await expect(second.store.claim({ ...claim, request: 's' })).rejects.toThrowError(/1 claims/)
    expect((await alive(inner)).claims).toBe(1)
  })

  it('does not give a grant the answer of a claim', async () => {
    const { store } = await scene({})
    const { lease: own } = await granted(store, [], 'r')
    const claimed = await store.claim({ lease: own, claims: [{ key: 'a' }], request: 'r' })
    expect(claimed.outcome).toBe('claimed')
  })
})

describe('a quota counts the contents of the store', () => {
  it('after a restart', async () => {
    const { store, start } = await scene({ leases: 2, claims: 3 })
    await granted(store, ['a', 'b'])
    await granted(store)
    const { store: again, access } = await start()
    await expect(granted(again)).rejects.toThrowError(/at most 2 leases/)
    expect(access.usage().get('ann')).toMatchObject({ leases: 2, claims: 2 })
  })

  it('when the access token is made again, with another quota', async () => {
    const { access, as, store } = await open()
    const ann = await as('ann', ['claim:'])
    for (const key of ['a', 'b', 'c']) await lease(ann.store, [key])
    await access.tokens.revoke('ann', 'root')
    const { store: again } = await as('ann', ['claim:'], { leases: 3 })
    await expect(lease(again)).rejects.toThrowError(/at most 3 leases/)
    await store.revoke({ target: { key: 'a' } })
    await access.tokens.revoke('ann', 'root')
    const { store: third } = await as('ann', ['claim:'], { claims: 3 })
    await lease(third, ['d'])
    await expect(lease(third, ['e'])).rejects.toThrowError(/at most 3 claims/)
  })

  it('with a second server, on either of them', async () => {
    const { store: one, start, inner } = await scene({ leases: 3, claims: 3 })
    const { store: two } = await start()
    for (let at = 0; at < 6; at++) {
      await granted(at % 2 === 0 ? one : two, [`k${at}`]).catch(() => {})
    }
    expect(await alive(inner)).toEqual({ leases: 3, claims: 3 })
  })

  it('of a lease that another server granted, and claims on it', async () => {
    const { store: one, start } = await scene({ claims: 2 })
    const { store: two } = await start()
    await granted(two)
    const own = await granted(one, ['a'])
    await two.claim({ lease: own.lease, claims: [{ key: 'b' }] })
    await expect(two.claim({ lease: own.lease, claims: [{ key: 'c' }] })).rejects.toThrowError(
      /2 claims/,
    )
  })

  it('for the owner of the lease, whoever claims on it', async () => {
    const { as } = await open()
    const ann = await as('ann', ['claim:'], { claims: 2 })
    const bob = await as('bob', ['all:'])
    const { lease: own } = await lease(ann.store, ['a'])
    await bob.store.claim({ lease: own, claims: [{ key: 'b' }] })
    await expect(bob.store.claim({ lease: own, claims: [{ key: 'c' }] })).rejects.toThrowError(
      /"ann" may use at most 2 claims/,
    )
    await lease(bob.store, ['d', 'e', 'f'])
  })

  it('and has room again after others ended leases, and for leases under an ended one', async () => {
    const { inner, store, clock } = await scene({ leases: 2, claims: 2 })
    const parent = await granted(store, ['a'])
    await store.grant({ holder: 'me', ttl: 60_000, parent: parent.lease, claims: [{ key: 'b' }] })
    await inner.revoke({ target: { key: 'b' } })
    await store.claim({ lease: parent.lease, claims: [{ key: 'c' }] })
    await store.revoke({ target: { lease: parent.lease }, request: 'end' })
    await granted(store, ['a'])
    await granted(store, ['b'])
    await expect(granted(store)).rejects.toThrowError(/at most 2 leases/)
    await clock.advance(61_000)
    await granted(store, ['a', 'b'])
  })

  it('never allows more, and never refuses a call that there is room for', async () => {
    const QUOTA = { leases: 3, claims: 5 }
    const step = fc.record({
      what: fc.constantFrom('grant', 'claim', 'release', 'revoke', 'restart', 'expire'),
      server: fc.nat(1),
      of: fc.nat(5),
      keys: fc.subarray(['a', 'b', 'c'], { minLength: 1 }),
      request: fc.option(fc.constantFrom('r', 's', 't'), { nil: undefined }),
    })
    const run = async (
      steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[],
    ) => {
      const { inner, clock, start, store } = await scene(QUOTA)
      const servers = [store, (await start()).store]
      const made: Granted[] = []
      for (const { what, server, of, keys, request } of steps) {
        const on = servers[server]!
        const { lease: own = 'none', token = 1 } = made[of % Math.max(1, made.length)] ?? {}
        const before = await alive(inner)
        const wanted = { leases: what === 'grant' ? 1 : 0, claims: keys.length }
        try {
          if (what === 'grant') made.push(await granted(on, keys, request))
          if (what === 'claim') {
            await on.claim({ lease: own, claims: keys.map((key) => ({ key })), request })
          }
          if (what === 'release') await on.release({ lease: own, keys, token, request })
          if (what === 'revoke') await on.revoke({ target: { lease: own }, request, why: 'x' })
        } catch (error) {
          if (!isLeaseholdError(error, 'limit-exceeded')) {
            expect(error).toMatchObject({
              code: expect.stringMatching(/-ended|-not-found|forbidden/),
            })
          } else {
            const isFull =
              before.leases + wanted.leases > QUOTA.leases ||
              before.claims + wanted.claims > QUOTA.claims
            expect(isFull).toBe(true)
            expect(await alive(inner)).toEqual(before)
          }
        }
        if (what === 'restart') servers[server] = (await start()).store
        if (what === 'expire') await clock.advance(of * 15_000)
        const after = await alive(inner)
        expect(after.leases).toBeLessThanOrEqual(QUOTA.leases)
        expect(after.claims).toBeLessThanOrEqual(QUOTA.claims)
      }
    }
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 40 }), run), { numRuns: 150 })
  })
})

describe('the label that names the owner of a lease', () => {
  it('is not shown, and cannot be set', async () => {
    const { inner, store } = await scene({ leases: 2 })
    const labels = { purpose: 'test' }
    const made = (await store.grant({ holder: 'me', ttl: 60_000, labels })) as Granted
    expect((await store.read({ lease: made.lease })).lease?.labels).toEqual(labels)
    const { leases } = await store.read({ leases: true })
    expect(leases.find(({ holder }) => holder === 'me')?.labels).toEqual(labels)
    const plain = made.lease.split('~')[0]!
    const kept = (await inner.read({ lease: plain })).lease?.labels
    expect(kept).toEqual({ ...labels, 'leasehold/principal': 'ann' })
    const forged = { 'leasehold/principal': 'bob' }
    await expect(store.grant({ holder: 'me', ttl: 60_000, labels: forged })).rejects.toThrowError(
      /reserved for the server/,
    )
  })
})

describe('a rate below one call a second', () => {
  it('lets a call pass now and then', async () => {
    const { as, clock } = await open()
    const { store } = await as('slow', ['read:'], { callsPerSecond: 0.5 })
    await store.read({ key: 'k' })
    await expect(store.read({ key: 'k' })).rejects.toThrowError(/0.5 calls a second/)
    await clock.advance(2000)
    await store.read({ key: 'k' })
  })

  it('is kept when the access token is made again', async () => {
    const { as, access } = await open()
    const quota = { callsPerSecond: 1 }
    const first = await as('ann', ['read:'], quota)
    await first.store.read({ key: 'k' })
    await access.tokens.revoke('ann', 'root')
    const { store } = await as('ann', ['read:'], quota)
    await expect(store.read({ key: 'k' })).rejects.toThrowError(/1 calls a second/)
  })
})
