import { memoryStore } from 'leasehold/memory'
import { DEFAULT_LIMITS, LeaseholdError, type LeaseStore, type Notice } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { createServerActions } from '../../../src/access/guard/server-actions.ts'
import { Access, type AuditEntry, parseRight, type Quota } from '../../../src/access/index.ts'
import { changedStore, Gate } from '../../setup/changed-store.ts'
import { hear, lease, refused } from '../scene.ts'

const plainOf = (signed: string) => signed.split('~')[0]!
const SPEC = { holder: 'h', ttl: 60_000 }

/** A server on a store that a test can hold up, slow down or break while it runs. */
async function scene() {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const entries: AuditEntry[] = []
  const audit = { record: (entry: AuditEntry) => void entries.push(entry) }
  const changes: Partial<LeaseStore> = {}
  const store = new Proxy(inner, {
    get: (_, name) => Reflect.get(changedStore(inner, changes), name),
  })
  const access = await Access.open({ store, limits: DEFAULT_LIMITS, audit, clock })
  const admit = (token: string) => access.admit({ authorization: `Bearer ${token}` })
  const token = (name: string, rights: string, quota?: Quota) =>
    access.tokens.create({ name, rights: rights.split(' ').map(parseRight), quota })
  const as = async (name: string, rights: string, quota?: Quota) =>
    admit(await token(name, rights, quota))
  return { clock, inner, changes, entries, access, admit, token, as }
}

describe('a refusal', () => {
  it('names the missing right, as it must be requested', async () => {
    const { as, inner } = await scene()
    const { store } = await as('eve', 'release:jobs/')
    await lease(inner, ['jobs/1'])
    const why = 'x'
    for (const [call, right] of [
      [() => store.grant(SPEC), 'claim:'],
      [() => store.grant({ ...SPEC, claims: [{ key: 'k' }] }), 'claim:k'],
      [() => store.read({ prefix: 'a/' }), 'read:a/'],
      [() => store.read({ key: 'k' }), 'read:k'],
      [() => store.revoke({ target: { key: 'jobs/1' }, why }), 'admin:jobs/1'],
      [() => store.revoke({ target: { prefix: 'jobs/' }, why }), 'admin:jobs/'],
      [async () => store.watch({ prefix: 'w/' }, () => {}), 'watch:w/'],
    ] as const) {
      const error = await call().catch((thrown) => thrown)
      expect(error).toEqual(refused('forbidden'))
      expect(error.message).toContain(`use an access token with '${right}'`)
    }
  })

  it('of an invalid call comes before the call counts', async () => {
    const { as, access } = await scene()
    const { store } = await as('ann', 'all:')
    const labels = Object.fromEntries(
      Array.from({ length: DEFAULT_LIMITS.labels }, (_, at) => [`l${at}`, 'x']),
    )
    await expect(store.grant({ ...SPEC, labels })).rejects.toThrowError()
    await expect(store.grant({ ...SPEC, ttl: 1 })).rejects.toThrowError()
    expect(access.usage().get('ann')?.calls).toBe(0)
    await store.grant(SPEC)
    expect(access.usage().get('ann')?.calls).toBe(1)
  })

  it('is written down when a right is missing, and not when the store fails', async () => {
    const { as, inner, changes, entries } = await scene()
    const { store } = await as('eve', 'renew:jobs/')
    const { lease: other } = await lease(inner, ['other/1'])
    changes.read = () => Promise.reject(new LeaseholdError('storage-failed', 'x'))
    const wanted = { lease: other, claims: [{ key: 'jobs/2' }] }
    await expect(store.renew([other])).rejects.toEqual(refused('storage-failed'))
    expect(entries).toEqual([])
    delete changes.read
    await expect(store.renew([other])).rejects.toEqual(refused('forbidden'))
    expect(entries).toMatchObject([{ action: 'renew', by: 'eve', outcome: 'forbidden' }])
    await expect(store.claim(wanted)).rejects.toEqual(refused('forbidden'))
  })
})

describe('a right to some keys', () => {
  // Each possible first character of a key.
  const PREFIXES = Array.from({ length: 94 }, (_, at) => String.fromCharCode(33 + at))

  it('does not exist for listing all leases, or for a lease without keys', async () => {
    const { as, inner } = await scene()
    const { lease: bare } = await lease(inner)
    const rights = PREFIXES.map((prefix) => `read,renew:${prefix}`).join(' ')
    const { store } = await as('ann', rights)
    await expect(store.read({ leases: true })).rejects.toEqual(refused('forbidden'))
    await expect(store.renew([bare])).rejects.toEqual(refused('forbidden'))
    await expect(store.read({ lease: bare })).rejects.toEqual(refused('forbidden'))
  })

  it('hides the reason for the end of a lease that may have had other keys', async () => {
    const { as, inner } = await scene()
    const { lease: id } = await lease(inner, ['jobs/1'])
    await inner.revoke({ target: { lease: id }, by: 'ops', why: 'secret' })
    const rights = PREFIXES.map((prefix) => `read:${prefix}`).join(' ')
    const { store } = await as('ann', rights)
    expect((await store.read({ lease: id })).end).toEqual({ reason: 'revoked' })
    const { store: all } = await as('bob', 'read:')
    expect((await all.read({ lease: id })).end).toMatchObject({ by: 'ops', why: 'secret' })
  })
})

describe('the owner of a lease', () => {
  it('learns who ended it and why, by any call', async () => {
    const { as, inner } = await scene()
    const { store } = await as('ann', 'claim:jobs/')
    const { lease: mine } = await lease(store, ['jobs/1'])
    await inner.revoke({ target: { lease: plainOf(mine) }, by: 'ops', why: 'stuck' })
    const refusal = { code: 'lease-ended', by: 'ops', why: 'stuck' }
    const claims = [{ key: 'jobs/2' }]
    await expect(store.claim({ lease: mine, claims })).rejects.toMatchObject(refusal)
  })

  it('sees its claims on another connection, by the secret and without a right to watch', async () => {
    const { token, admit, clock } = await scene()
    const text = await token('ann', 'claim:jobs/')
    const { lease: mine } = await lease(admit(text).store, ['jobs/1'])
    const { notices } = hear(admit(text).store, { lease: mine })
    await clock.advance(0)
    expect(notices).toMatchObject([{ type: 'standing', claims: [{ key: 'jobs/1' }] }])
  })

  it('has room for the next as soon as it has ended one, although counting takes long', async () => {
    const { as, inner, changes, clock } = await scene()
    const { store } = await as('ann', 'claim:', { leases: 1 })
    changes.read = ((query: never) => {
      clock.stall(10)
      return inner.read(query)
    }) as LeaseStore['read']
    for (let round = 0; round < 4; round++) {
      const { lease: mine } = await lease(store)
      await expect(lease(store)).rejects.toEqual(refused('limit-exceeded'))
      await store.revoke({ target: { lease: mine } })
    }
  })
})

describe('a call that is pending when its token ends', () => {
  async function underWay(call: (store: LeaseStore, mine: string) => Promise<unknown>) {
    const { as, inner, changes, access, clock } = await scene()
    const { store } = await as('ann', 'claim:')
    const { lease: mine } = await lease(store)
    await lease(inner, ['taken'])
    const gate = new Gate()
    changes.grant = async (request) => {
      await gate.opened
      return inner.grant(request)
    }
    changes.claim = async (request) => {
      await gate.opened
      return inner.claim(request)
    }
    const answer = call(store, mine).catch((error) => error)
    await clock.advance(0)
    await access.tokens.revoke('ann', 'ops')
    gate.open()
    return answer
  }
  const free = [{ key: 'free' }]
  const taken = [{ key: 'taken' }]

  it('is answered if it holds, or got nothing', async () => {
    const granted = await underWay((store) => store.grant({ ...SPEC, claims: free }))
    expect(granted).toMatchObject({ outcome: 'granted', holds: true })
    const claimed = await underWay((store, mine) => store.claim({ lease: mine, claims: free }))
    expect(claimed).toMatchObject({ outcome: 'claimed', holds: true })
    const busy = await underWay((store, mine) =>
      store.claim({ lease: mine, claims: taken, ifFree: true }),
    )
    expect(busy).toMatchObject({ outcome: 'busy' })
  })

  it('is withdrawn and refused if it would wait', async () => {
    const granted = await underWay((store) => store.grant({ ...SPEC, claims: taken }))
    expect(granted).toEqual(refused('unauthenticated'))
    const claimed = await underWay((store, mine) => store.claim({ lease: mine, claims: taken }))
    expect(claimed).toEqual(refused('unauthenticated'))
  })
})

describe('a watch of the lease of another', () => {
  const standing = (notices: readonly Notice[]) =>
    notices.flatMap((notice) => (notice.type === 'standing' ? notice.claims : []))

  it('does not show a key that the lease has claimed while it was looked up', async () => {
    const { as, inner, changes, clock } = await scene()
    const { store } = await as('bob', 'watch:jobs/')
    const { lease: id } = await lease(inner, ['jobs/1'])
    changes.read = (async (query: never) => {
      const reading = await inner.read(query)
      if ('lease' in query) await inner.claim({ lease: id, claims: [{ key: 'secret/1' }] })
      return reading
    }) as LeaseStore['read']
    const { notices } = hear(store, { lease: id })
    await clock.advance(0)
    expect(standing(notices).map(({ key }) => key)).toEqual(['jobs/1'])
  })

  it('shows who ended it and why to a client that may watch all its keys', async () => {
    const { as, inner, clock } = await scene()
    const { store } = await as('bob', 'watch:jobs/')
    const { lease: id } = await lease(inner, ['jobs/1'])
    const { notices } = hear(store, { lease: id })
    await clock.advance(0)
    await inner.revoke({ target: { lease: id }, by: 'ops', why: 'stuck' })
    await clock.advance(0)
    expect(notices.at(-1)).toMatchObject({ type: 'gone', end: { by: 'ops', why: 'stuck' } })
  })
})

describe('an action of the server on a lease', () => {
  it.each([0, 1])('ends it for the accounts if the store has ended %d leases', async (leases) => {
    const forgotten: string[] = []
    const answer = { revision: 1, leases, claims: 0, more: false }
    const store = changedStore(memoryStore(), { revoke: async () => answer })
    const serverActions = createServerActions(store, plainOf, (id) => forgotten.push(id))
    await serverActions.revoke({ target: { lease: '1.1~secret' } })
    expect(forgotten).toEqual(leases > 0 ? ['1.1'] : [])
  })
})

describe('a watch', () => {
  it('that has ended while it was opened does not count', async () => {
    const { as, changes, access } = await scene()
    const { store } = await as('ann', 'watch:', { watches: 1 })
    const watches = () => access.usage().get('ann')?.watches
    changes.watch = (_target, observer) => {
      observer({ type: 'compacted', oldest: 5 })
      return { close: () => {} }
    }
    for (let round = 0; round < 2; round++) {
      const { notices } = hear(store, { prefix: '' })
      expect([notices.length, watches()]).toEqual([1, 0])
    }
    changes.watch = () => {
      throw new LeaseholdError('closed', 'x')
    }
    expect(() => store.watch({ prefix: '' }, () => {})).toThrowError(refused('closed'))
    expect(watches()).toBe(0)
    delete changes.watch
    const { watch } = hear(store, { prefix: '' })
    expect(watches()).toBe(1)
    watch.close()
    watch.close()
    expect(watches()).toBe(0)
  })
})
