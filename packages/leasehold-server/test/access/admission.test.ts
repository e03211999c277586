import { memoryStore } from 'leasehold/memory'
import { DEFAULT_LIMITS, type Granted, LeaseholdError, type LeaseStore } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { LimitedAudit } from '../../src/access/audit/limited-audit.ts'
import { withdrawWaiting } from '../../src/access/guard/server-actions.ts'
import { Access, type AuditEntry, noAudit, parseRight, SESSION_MS } from '../../src/access/index.ts'
import { changedStore, Gate } from '../setup/changed-store.ts'
import { hear, lease, open, refused } from './scene.ts'

/** A server whose store can be changed while it runs. */
async function changeable() {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const changes: Partial<LeaseStore> = {}
  const through = (name: 'grant' | 'revoke' | 'read' | 'claim') => (request: never) =>
    ((changes[name] ?? inner[name]) as (given: never) => never).call(inner, request)
  const store = changedStore(inner, {
    grant: through('grant'),
    revoke: through('revoke'),
    read: through('read') as never,
    claim: through('claim'),
  })
  const entries: AuditEntry[] = []
  const audit = { record: (entry: AuditEntry) => void entries.push(entry) }
  const access = await Access.open({ store, limits: DEFAULT_LIMITS, audit, clock })
  await access.tokens.create({ name: 'root', rights: [parseRight('all:')] })
  const as = async (name: string, ...rights: string[]) => {
    const text = await access.tokens.create({ name, rights: rights.map(parseRight) })
    return access.admit({ authorization: `Bearer ${text}` })
  }
  return { clock, inner, changes, access, as, entries }
}

const counts = (store: LeaseStore, ...keys: string[]) =>
  Promise.all(keys.map(async (key) => (await store.read({ key })).count))

describe('when an access token ends', () => {
  it('its waiting claims are withdrawn before its connections are notified, and holds stay', async () => {
    const { inner, access, as } = await changeable()
    await lease(inner, ['b'])
    const ann = await as('ann', 'claim:')
    const own = await lease(ann.store, ['own'])
    await ann.store.claim({ lease: own.lease, claims: [{ key: 'a' }, { key: 'b' }] })
    const reported = new Promise<readonly number[]>((resolve) => {
      ann.ended = () => void counts(inner, 'own', 'a', 'b').then(resolve)
    })
    await access.tokens.revoke('ann', 'root')
    expect(await reported).toEqual([1, 0, 1])
    const { tenures } = await inner.read({ history: 'a' })
    const end = { by: 'leasehold-server', reason: 'revoked', why: 'its access token was revoked' }
    expect(tenures).toMatchObject([{ end }])
  })

  it('does not happen if only its rights change: waiting claims stay', async () => {
    const { access, as, inner, clock } = await changeable()
    await lease(inner, ['k'])
    const ann = await as('ann', 'claim:')
    await lease(ann.store, ['k'])
    ann.principal.rights = [parseRight('read:')]
    access.tokens.changed(ann.principal)
    await clock.advance(10)
    expect(await counts(inner, 'k')).toEqual([2])
  })

  it('connections are notified after five seconds if the store does not answer, and at once if it fails', async () => {
    for (const fails of [false, true]) {
      const { inner, access, as, clock, changes } = await changeable()
      await lease(inner, ['k'])
      const ann = await as('ann', 'claim:')
      await lease(ann.store, ['k'])
      let reported = 0
      ann.ended = (error) => {
        expect(error).toMatchObject({ code: 'unauthenticated' })
        reported++
      }
      changes.revoke = async (request) => {
        if ('lease' in request.target) return inner.revoke(request)
        if (fails) throw new LeaseholdError('storage-failed', 'away')
        return new Promise(() => {})
      }
      await access.tokens.revoke('ann', 'root')
      await clock.advance(4999)
      expect(reported).toBe(fails ? 1 : 0)
      await clock.advance(1)
      expect(reported).toBe(1)
    }
  })

  it('while a claim is made, that claim is withdrawn and refused', async () => {
    const { inner, access, as, changes } = await changeable()
    await lease(inner, ['k'])
    const ann = await as('ann', 'claim:')
    const own = await lease(ann.store)
    const gate = new Gate()
    for (const name of ['grant', 'claim'] as const) {
      changes[name] = async (request: never) => {
        await gate.opened
        return inner[name](request) as never
      }
    }
    const calls = [
      lease(ann.store, ['k']),
      ann.store.claim({ lease: own.lease, claims: [{ key: 'k' }] }),
    ]
    const ended = Promise.allSettled(calls)
    await access.tokens.revoke('ann', 'root')
    gate.open()
    const refusal = { status: 'rejected', reason: { code: 'unauthenticated' } }
    expect(await ended).toMatchObject([refusal, refusal])
    expect(await counts(inner, 'k')).toEqual([1])
  })

  it('and a claim cannot be withdrawn, the outcome is unknown', async () => {
    const { inner, access, as, changes } = await changeable()
    await lease(inner, ['k'])
    const ann = await as('ann', 'claim:')
    const gate = new Gate()
    changes.grant = async (request) => {
      await gate.opened
      return inner.grant(request)
    }
    const call = lease(ann.store, ['k']).catch((error) => error)
    await access.tokens.revoke('ann', 'root')
    const cause = new LeaseholdError('storage-failed', 'the store is away')
    changes.revoke = async () => {
      throw cause
    }
    gate.open()
    expect(await call).toMatchObject({
      ...{ code: 'unknown-outcome', cause, message: expect.stringContaining('store is away') },
    })
  })

  it('the others stay, and connected clients are notified once', async () => {
    const { access, as, token } = await open()
    const first = await as('ann', ['watch:'])
    const text = await token('bob', ['watch:'])
    const bobs = [1, 2].map(() => access.admit({ authorization: `Bearer ${text}` }))
    const reported: string[] = []
    for (const [at, one] of [first, ...bobs].entries()) one.ended = () => reported.push(String(at))
    const { notices } = hear(bobs[0]!.store, { prefix: 'a' })
    bobs[1]!.leave()
    await access.tokens.revoke('bob', 'root')
    expect(reported).toEqual(['1'])
    expect(access.usage().get('bob')?.watches).toBe(0)
    expect(notices.filter(({ type }) => type !== 'watching')).toEqual([])
    await expect(bobs[0]!.store.read({ key: 'k' })).rejects.toThrowError(refused('unauthenticated'))
  })
})

describe('withdrawing', () => {
  it('continues after a failure, and then reports the first one', async () => {
    const inner = memoryStore({ clock: new TestClock() })
    await lease(inner, ['k'])
    const waiting = [
      await lease(inner, ['k']),
      await lease(inner, ['k']),
      await lease(inner, ['k']),
    ]
    const ids = waiting.map((each) => each.lease)
    const store = changedStore(inner, {
      read: (async (query: { lease: string }) => {
        if (query.lease !== ids[2]) throw new Error(query.lease)
        return inner.read(query)
      }) as never,
    })
    await expect(withdrawWaiting(store, ids, 'x')).rejects.toThrowError(ids[0])
    expect(await counts(inner, 'k')).toEqual([3])
    await withdrawWaiting(inner, ids, 'x')
    expect(await counts(inner, 'k')).toEqual([1])
  })
})

describe('an admission', () => {
  it('of everybody treats every lease as its own, and acts on it', async () => {
    const { access, store } = await open()
    const all = access.admit({})
    expect(all).toMatchObject({ isKnown: false, principal: { name: 'everybody' } })
    expect(all.ownLease('7.1')).toBe('7.1')
    expect(all.payload(1e12)).toBe(0)
    const { lease: id, token } = await lease(store, ['a', 'b'])
    expect((await all.serverActions.readLease(id)).claims).toHaveLength(2)
    expect((await all.serverActions.renew(id)).lost).toEqual([])
    await all.serverActions.release({ lease: id, keys: ['a'], token })
    expect((await all.serverActions.revoke({ target: { key: 'b' } })).leases).toBe(0)
    expect((await all.serverActions.revoke({ target: { lease: id } })).leases).toBe(1)
    expect((await all.serverActions.renew(id)).lost).toHaveLength(1)
    all.leave()
  })

  it('of a principal opens the leases that were granted to it, and acts on them', async () => {
    const { access, as, store } = await open()
    const ann = await as('ann', ['claim:'], { leases: 1, bytesPerSecond: 100 })
    expect(ann.isKnown).toBe(true)
    expect([ann.payload(100), ann.payload(50)]).toEqual([0, 500])
    const own = await lease(ann.store, ['a', 'b'])
    const plain = own.lease.split('~')[0]!
    expect(ann.ownLease(own.lease)).toBe(plain)
    expect(ann.ownLease(plain)).toBeUndefined()
    expect((await ann.serverActions.readLease(own.lease)).lease?.id).toBe(plain)
    await ann.serverActions.release({ lease: own.lease, keys: ['a'], token: own.token })
    expect(await counts(store, 'a', 'b')).toEqual([0, 1])
    expect((await ann.serverActions.renew(own.lease)).lost).toEqual([])
    await expect(lease(ann.store)).rejects.toThrowError(refused('limit-exceeded'))
    const ended = await ann.serverActions.revoke({ target: { lease: own.lease } })
    expect([ended.leases, access.usage().get('ann')?.leases]).toEqual([1, 0])
    // A revocation that ended nothing frees nothing.
    await lease(ann.store)
    await expect(ann.serverActions.revoke({ target: { lease: own.lease } })).rejects.toThrowError(
      refused('lease-ended'),
    )
    expect(access.usage().get('ann')?.leases).toBe(1)
  })

  it('that has left closes its watches, renews nothing more, and is notified of no end', async () => {
    const { access, as } = await open()
    const ann = await as('ann', ['all:'])
    const { lease: own } = await lease(ann.store)
    const reported: unknown[] = []
    ann.ended = (error) => reported.push(error)
    hear(ann.store, { prefix: '' })
    expect(access.usage().get('ann')?.watches).toBe(1)
    ann.leave()
    expect(access.usage().get('ann')?.watches).toBe(0)
    ann.leave()
    await expect(ann.store.renew([own])).rejects.toThrowError(refused('closed'))
    await access.tokens.revoke('ann', 'root')
    expect(reported).toEqual([])
  })

  it('counts the usage of all, but only while there are tokens', async () => {
    const { clock, inner, access, changes } = await changeable()
    const reads: unknown[] = []
    changes.read = ((query: never) => {
      reads.push(query)
      return inner.read(query)
    }) as never
    await inner.grant({ holder: 'h', ttl: 1000, labels: { 'leasehold/principal': 'cat' } })
    await access.countUsage()
    expect(access.usage().get('cat')).toMatchObject({ leases: 1, claims: 0 })
    expect(reads).not.toEqual([])
    await access.tokens.revoke('root', 'root')
    await clock.advance(10)
    reads.length = 0
    await access.countUsage()
    expect(reads).toEqual([])
  })

  it('records actions with their name', async () => {
    const { access, entries } = await open()
    const entry = { action: 'drain', by: 'ann', outcome: 'done' }
    access.record(entry)
    expect(entries).toEqual([entry])
  })
})

describe('a browser', () => {
  it('signs in with a token, and stays so until the session or the token ends', async () => {
    const { access, token, clock } = await open()
    expect(access.signIn(undefined)).toBeUndefined()
    const text = await token('ann', ['all:'])
    await token('bob', ['all:'])
    const session = access.signIn(`Bearer ${text}`)!
    expect(access.identify({ session }).name).toBe('ann')
    expect(access.identify({ session, certificate: undefined }).name).toBe('ann')
    expect(() => access.signIn('Bearer lh_ann_x')).toThrowError(refused('unauthenticated'))
    expect(() => access.identify({ session: 'x' })).toThrowError(/requires an access token/)
    const wrong = { session, authorization: 'Bearer lh_x' }
    expect(() => access.identify(wrong)).toThrowError(/unknown access token/)
    await access.tokens.revoke('ann', 'root')
    expect(() => access.identify({ session })).toThrowError(/sign in again/)
    const other = await token('ann', ['all:'])
    // The session was begun with the token before.
    expect(() => access.identify({ session })).toThrowError(/sign in again/)
    const second = access.signIn(`Bearer ${other}`)!
    await clock.advance(SESSION_MS + 1)
    expect(() => access.identify({ session: second })).toThrowError(/requires an access token/)
  })

  it('that calls a server without tokens by a strange name is refused', async () => {
    const { access, token } = await open()
    expect(() => access.identify({ misnamed: 'evil.example' })).toThrowError(refused('forbidden'))
    const authorization = `Bearer ${await token('ann', ['all:'])}`
    expect(access.identify({ authorization, misnamed: 'x' }).name).toBe('ann')
    const certificate = 'nobody'
    expect(access.identify({ authorization, certificate }).name).toBe('ann')
    const text = authorization.slice(7)
    const twice = [`Bearer  ${text}`, `${authorization} x`, `x ${authorization}`]
    for (const wrong of [...twice, 'Bearer', 'Bearer ', `Basic ${text}`]) {
      expect(() => access.identify({ authorization: wrong })).toThrowError(/must be "Bearer/)
    }
  })
})

describe('the store of everybody', () => {
  it('passes every call on', async () => {
    const { access, store, clock } = await open()
    const all = access.admit({}).store
    expect(all.guarantees).toBe(store.guarantees)
    const own = (await all.grant({ holder: 'h', ttl: 60_000, claims: [{ key: 'a' }] })) as Granted
    expect((await all.renew([own.lease])).lost).toEqual([])
    await all.claim({ lease: own.lease, claims: [{ key: 'b' }] })
    await all.update({ lease: own.lease, key: 'a', token: own.token, value: 'v' })
    expect((await all.read({ key: 'a' })).claims[0]?.value).toBe('v')
    await all.release({ lease: own.lease, keys: ['a'], token: own.token })
    const { notices, watch } = hear(all, { prefix: '' })
    await clock.advance(0)
    expect(notices).not.toEqual([])
    watch.close()
    await all.close()
    expect(await counts(store, 'a', 'b')).toEqual([0, 1])
  })

  it('records ends by key, with any outcome', async () => {
    const clock = new TestClock()
    const inner = memoryStore({ clock })
    let fault: Error | undefined
    const store = changedStore(inner, {
      revoke: async (request) => {
        if (fault !== undefined) throw fault
        return inner.revoke(request)
      },
    })
    const entries: AuditEntry[] = []
    const audit = { record: (entry: AuditEntry) => void entries.push(entry) }
    const access = await Access.open({ store, limits: DEFAULT_LIMITS, audit, clock })
    const all = access.admit({}).store
    const { lease: id } = await lease(inner, ['k'])
    await all.revoke({ target: { key: 'k' } })
    await all.revoke({ target: { lease: id } })
    await expect(all.revoke({ target: { key: '' } })).rejects.toThrowError(
      refused('invalid-argument'),
    )
    fault = new LeaseholdError('storage-failed', 'away')
    await expect(all.revoke({ target: { prefix: 'k' } })).rejects.toBe(fault)
    fault = new Error('odd')
    await expect(all.revoke({ target: { prefix: 'k' }, why: 'y' })).rejects.toBe(fault)
    const action = 'revoke'
    expect(entries).toEqual([
      { action, by: 'everybody', target: { key: 'k' }, outcome: 'done' },
      { action, by: 'everybody', target: { prefix: 'k' }, outcome: 'storage-failed' },
      { action, by: 'everybody', target: { prefix: 'k' }, why: 'y', outcome: 'unknown-outcome' },
    ])
    noAudit.record(entries[0]!)
  })
})

describe('the audit of refusals', () => {
  it('distinguishes a thousand sources, and groups all others', async () => {
    const clock = new TestClock()
    const entries: AuditEntry[] = []
    const audit = new LimitedAudit({ record: (entry) => void entries.push(entry) }, clock)
    const record = (by: string, times: number, outcome = 'forbidden') => {
      for (let at = 0; at < times; at++) {
        audit.record({ action: 'read', by, from: `from ${by}`, outcome })
      }
    }
    for (let at = 0; at < 1000; at++) record(`p${at}`, 1)
    record('p0', 20)
    record('late', 15)
    record('later', 15, 'limit-exceeded')
    expect(entries).toHaveLength(1000 + 19 + 20)
    audit.record({ action: 'read', by: 'late', outcome: 'unknown-outcome' })
    audit.record({ action: 'read', by: 'late', outcome: 'odd' })
    expect(entries).toHaveLength(1041)
    await clock.advance(59_999)
    expect(entries).toHaveLength(1041)
    await clock.advance(1)
    const action = 'refusals'
    expect(entries.slice(1041)).toEqual([
      ...[{ action, by: 'p0', from: 'from p0', outcome: 'forbidden', why: more(1) }],
      ...[{ action, by: 'others', from: undefined, outcome: 'limit-exceeded', why: more(10) }],
    ])
    audit.close()
    await clock.advance(120_000)
    expect(entries).toHaveLength(1043)
  })
})

const more = (count: number) => `${count} more refusals within a minute`
