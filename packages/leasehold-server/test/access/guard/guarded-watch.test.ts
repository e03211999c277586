import { memoryStore } from 'leasehold/memory'
import { LeaseholdError, type LeaseStore, type Notice, type Observer } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { GuardedWatch } from '../../../src/access/guard/guarded-watch.ts'
import { LeaseAccess, onLease } from '../../../src/access/guard/lease-access.ts'
import { LeaseSecrets } from '../../../src/access/guard/lease-secrets.ts'
import { readWithoutServerKeys, withoutServerKeys } from '../../../src/access/guard/server-keys.ts'
import { labelled, ownerOf, tagOf, withoutOwner } from '../../../src/access/quotas/owner-label.ts'
import { parseRight } from '../../../src/access/rights.ts'
import { changedStore, Gate } from '../../setup/changed-store.ts'
import { hear, lease, open, refused } from '../scene.ts'

function scene() {
  const received: Notice[] = []
  let closed = 0
  let isOpen = false
  let send: Observer = () => {}
  const store = changedStore(memoryStore({ clock: new TestClock() }), {
    watch: (_target, observer) => {
      send = observer
      isOpen = true
      return {
        close: () => {
          isOpen = false
        },
      }
    },
  })
  const watch = new GuardedWatch(
    (notice) => void received.push(notice),
    () => closed++,
  )
  const state = () => ({ closed, isOpen })
  return { received, watch, store, state, send: (notice: Notice) => send(notice) }
}

const holds = (token: number): Notice => ({ type: 'holds', token, revision: token }) as Notice
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('a guarded watch', () => {
  it('passes notices on until it is closed', () => {
    const { watch, store, received, send, state } = scene()
    watch.open(store, { lease: 'l' })
    send(holds(1))
    expect(received).toEqual([holds(1)])
    watch.close()
    watch.close()
    send(holds(2))
    expect(received).toHaveLength(1)
    expect(state()).toEqual({ closed: 1, isOpen: false })
  })

  it('is not opened when it was closed before', () => {
    const { watch, store, state } = scene()
    watch.close()
    watch.open(store, { lease: 'l' })
    expect(state()).toEqual({ closed: 1, isOpen: false })
  })

  it.each(['gone', 'compacted', 'interrupted'] as const)('ends with a notice: %s', (type) => {
    const { watch, store, received, send, state } = scene()
    watch.open(store, { lease: 'l' })
    send({ type } as Notice)
    expect(received).toEqual([{ type }])
    expect(state()).toEqual({ closed: 1, isOpen: false })
  })

  it('is interrupted once, by an error with a code', () => {
    const { watch, store, received, state } = scene()
    watch.open(store, { lease: 'l' })
    watch.refuse(new LeaseholdError('forbidden', 'no'))
    watch.refuse(new LeaseholdError('closed', 'no'))
    expect(received).toMatchObject([{ type: 'interrupted', error: { code: 'forbidden' } }])
    expect(state()).toEqual({ closed: 1, isOpen: false })
    const other = scene()
    const cause = new Error('the disk is gone')
    other.watch.refuse(cause)
    const [notice] = other.received
    if (notice?.type !== 'interrupted') throw new Error('not interrupted')
    expect(notice.error).toMatchObject({ code: 'unknown-outcome', cause })
    expect(notice.error.message).toContain('the disk is gone')
  })

  it('keeps the order of notices while one is looked up, and leaves out hidden ones', async () => {
    const { watch, store, received, send } = scene()
    const gate = new Gate()
    watch.show = (notice) => {
      if (notice.type !== 'holds') return undefined
      return notice.token === 1 ? gate.opened.then(() => notice) : notice
    }
    watch.open(store, { lease: 'l' })
    send({ type: 'watching' } as Notice)
    send(holds(1))
    send(holds(2))
    send({ type: 'watching' } as Notice)
    send(holds(3))
    await settled()
    expect(received).toEqual([])
    gate.open()
    await settled()
    expect(received).toEqual([holds(1), holds(2), holds(3)])
    send(holds(4))
    // Nothing is looked up any more, so it is delivered at once.
    expect(received.at(-1)).toEqual(holds(4))
  })

  it('waits for the last of several that are looked up', async () => {
    const { watch, store, received, send } = scene()
    const gates = [new Gate(), new Gate()]
    watch.show = (notice) => {
      const gate = notice.type === 'holds' ? gates[notice.token] : undefined
      return gate ? gate.opened.then(() => notice) : notice
    }
    watch.open(store, { lease: 'l' })
    send(holds(0))
    send(holds(1))
    gates[0]!.open()
    await settled()
    send(holds(2))
    expect(received).toEqual([holds(0)])
    gates[1]!.open()
    await settled()
    expect(received).toEqual([holds(0), holds(1), holds(2)])
  })

  it('is interrupted if a lookup fails, and receives nothing after its close', async () => {
    const { watch, store, received, send } = scene()
    watch.show = () => Promise.reject(new LeaseholdError('closed', 'the store is closed'))
    watch.open(store, { lease: 'l' })
    send(holds(1))
    await settled()
    expect(received).toMatchObject([{ type: 'interrupted', error: { code: 'closed' } }])
    const late = scene()
    const gate = new Gate()
    late.watch.show = (notice) => gate.opened.then(() => notice)
    late.watch.open(late.store, { lease: 'l' })
    late.send(holds(1))
    late.watch.close()
    gate.open()
    await settled()
    expect(late.received).toEqual([])
  })
})

describe('the gate of leases', () => {
  const secrets = new LeaseSecrets(Buffer.alloc(32, 3))
  const gateOf = (store: LeaseStore, ...rights: string[]) =>
    new LeaseAccess(store, secrets, {
      name: 'ann',
      rights: rights.map(parseRight),
      quota: {},
      ended: undefined,
    })

  it('does not trust a read that does not show all claims', async () => {
    const inner = memoryStore({ clock: new TestClock() })
    const { lease: id } = await lease(inner, ['jobs/1', 'secret/1'])
    const store = changedStore(inner, {
      read: async (query) => {
        const reading = await inner.read(query)
        return 'claims' in reading ? { ...reading, claims: reading.claims.slice(0, 1) } : reading
      },
    } as Partial<LeaseStore>)
    await expect(gateOf(store, 'read:jobs/').allow(id, 'read')).rejects.toThrowError(
      refused('forbidden'),
    )
  })

  it('shows the result of a read, and hides the reason of an end from clients that may not see all', async () => {
    const store = memoryStore({ clock: new TestClock() })
    const { lease: id } = await lease(store, ['jobs/1'])
    expect(await gateOf(store, 'read:jobs/').allow(id, 'read')).toMatchObject({
      lease: id,
      hidesReason: false,
      reading: { claims: [{ key: 'jobs/1' }] },
    })
    expect(await gateOf(store, 'all:').allow(id, 'read')).toEqual({
      lease: id,
      isProven: false,
      hidesReason: false,
    })
    expect(await gateOf(store).allow(secrets.sign(id), 'read')).toEqual({
      lease: id,
      isProven: true,
      hidesReason: false,
    })
    await store.revoke({ target: { lease: id }, by: 'boss', why: 'merger' })
    expect(await gateOf(store, 'read:jobs/').allow(id, 'read')).toMatchObject({ hidesReason: true })
    expect(await gateOf(store, 'read:').allow(id, 'read')).toMatchObject({ hidesReason: false })
  })

  it('knows which target is one’s own', () => {
    const gate = gateOf(memoryStore({ clock: new TestClock() }))
    const signed = secrets.sign('7.1')
    expect(gate.ownTarget({ lease: signed })).toEqual({ target: { lease: '7.1' } })
    expect(gate.ownTarget({ parent: signed })).toEqual({ target: { parent: '7.1' } })
    expect(gate.ownTarget({ lease: '7.1' })).toBeUndefined()
    expect(gate.ownTarget({ key: signed })).toBeUndefined()
    expect(gate.ownTarget({ prefix: signed })).toBeUndefined()
  })

  it('takes the names out of the refusal of a lease that ended', async () => {
    const ended = new LeaseholdError('lease-ended', 'ended by boss: merger', {
      ...{ reason: 'revoked', by: 'boss', why: 'merger' },
    })
    const shown = { lease: '7.1', hidesReason: false }
    const hidden = { lease: '7.1', hidesReason: true }
    await expect(onLease(shown, Promise.reject(ended))).rejects.toBe(ended)
    const error = await onLease(hidden, Promise.reject(ended)).catch((each) => each)
    expect(error).toMatchObject({ code: 'lease-ended', reason: 'revoked' })
    expect([error.by, error.why]).toEqual([undefined, undefined])
    const other = new LeaseholdError('closed', 'closed')
    await expect(onLease(hidden, Promise.reject(other))).rejects.toBe(other)
    expect(await onLease(hidden, Promise.resolve(1))).toBe(1)
  })
})

describe('a lease’s secret', () => {
  it('is after the last separator of the id', () => {
    const secrets = new LeaseSecrets(Buffer.alloc(32, 3))
    const signed = secrets.sign('a~b')
    expect(signed).toMatch(/^a~b~[A-Za-z0-9_-]{22}$/)
    expect(secrets.open(signed)).toEqual({ lease: 'a~b', proven: true })
    expect(secrets.open('a~b')).toEqual({ lease: 'a', proven: false })
    expect(secrets.open('~x')).toEqual({ lease: '', proven: false })
    expect(secrets.open('ab')).toEqual({ lease: 'ab', proven: false })
    expect(new LeaseSecrets(Buffer.alloc(32, 4)).open(signed).proven).toBe(false)
  })
})

describe('the server’s own keys', () => {
  it('are left out of pages and of notices', async () => {
    const store = memoryStore({ clock: new TestClock() })
    for (const key of ['a', 'leasehold/1', 'leasehold/2', 'm']) await lease(store, [key])
    const page = await readWithoutServerKeys(store, { prefix: '', after: 'a', limit: 1 })
    expect(page.keys.map(({ key }) => key)).toEqual(['m'])
    const own = await readWithoutServerKeys(store, { prefix: 'leasehold/' })
    expect([own.keys, own.more]).toEqual([[], false])
    const events = (...keys: string[]) =>
      ({ type: 'events', revision: 9, events: keys.map((key) => ({ key })) }) as unknown as Notice
    expect(withoutServerKeys(events('leasehold/1', 'b'))).toEqual(events('b'))
    expect(withoutServerKeys(events('leasehold/1'))).toBeUndefined()
    const watching = { type: 'watching', revision: 9 } as Notice
    expect(withoutServerKeys(watching)).toBe(watching)
  })
})

describe('the label of an owner', () => {
  it('has the name, and the tag of the request if there is one', () => {
    const spec = { holder: 'h', ttl: 1000 }
    const plain = labelled(spec, { name: 'ann', tag: undefined })
    expect(plain).toEqual({ 'leasehold/principal': 'ann' })
    const tag = tagOf('0123456789012345678901234567890')
    expect([tag, tagOf(undefined)]).toEqual(['0123456789012345678901', undefined])
    const both = labelled({ ...spec, labels: { a: 'b' } }, { name: 'ann', tag })
    expect(both).toEqual({ a: 'b', 'leasehold/principal': `ann ${tag}` })
    const of = (labels: object) => ({ id: '1', labels }) as never
    expect(ownerOf(of(plain))).toEqual({ name: 'ann', tag: undefined })
    expect(ownerOf(of(both))).toEqual({ name: 'ann', tag })
    expect(ownerOf(of({}))).toBeUndefined()
    expect(withoutOwner(of(both))).toEqual({ id: '1', labels: { a: 'b' } })
    const bare = of({ a: 'b' })
    expect(withoutOwner(bare)).toBe(bare)
  })
})

describe('a notice of a watch', () => {
  it('shows the watcher of a lease only the keys that it may watch', async () => {
    const { as, store, clock } = await open()
    const ann = await as('ann', ['watch:jobs/'])
    const made = await lease(store, ['jobs/1'])
    const { notices } = hear(ann.store, { lease: made.lease })
    await clock.advance(0)
    const before = [await lease(store, ['jobs/2']), await lease(store, ['secret/2'])]
    const both = [{ key: 'jobs/2' }, { key: 'secret/2' }]
    await store.claim({ lease: made.lease, claims: both.slice(0, 1) })
    await store.claim({ lease: made.lease, claims: both.slice(1) })
    for (const each of before) await store.revoke({ target: { lease: each.lease } })
    await clock.advance(0)
    await store.revoke({ target: { key: 'secret/2' } })
    await store.revoke({ target: { key: 'jobs/2' } })
    await store.revoke({ target: { lease: made.lease }, by: 'boss', why: 'merger' })
    await clock.advance(0)
    const seen = (notice: Notice) =>
      'key' in notice ? `${notice.type} ${notice.key}` : notice.type
    expect(notices.map(seen)).toEqual(['standing', 'holds', 'removed jobs/2', 'gone'])
    expect(JSON.stringify(notices)).not.toContain('secret')
  })

  it('of a claim on several keys is shown to clients that may watch all of them', async () => {
    const { as, store, clock } = await open()
    const made = await lease(store, ['jobs/1'])
    const watchers = [await as('ann', ['watch:jobs/']), await as('bob', ['watch:'])]
    const heard = watchers.map((each) => hear(each.store, { lease: made.lease }).notices)
    await clock.advance(0)
    const before = await lease(store, ['jobs/2'])
    const claims = [{ key: 'jobs/2' }, { key: 'secret/2' }]
    await store.claim({ lease: made.lease, claims })
    await store.revoke({ target: { lease: before.lease } })
    await clock.advance(0)
    const received = heard.map((each) => each.filter(({ type }) => type === 'holds').length)
    expect(received).toEqual([0, 1])
  })
})
