import { describe, expect, it } from 'vitest'
import { LeaseholdError, type LeaseStore } from '../../src/port/index.ts'
import { conformance, type Opened, testStore } from '../../src/testing/index.ts'
import { changedStore, leftOpen } from '../setup/changed-store.ts'

async function open(): Promise<Opened> {
  const { store, clock } = testStore()
  return { store, advance: (ms) => clock.advance(ms) }
}

/** The memory store with some methods replaced. */
function openWith(change: (store: LeaseStore) => Partial<LeaseStore>): () => Promise<Opened> {
  return async () => {
    const opened = await open()
    const { store } = opened
    return { ...opened, store: changedStore(store, change(store)) }
  }
}

async function failures(openStore: () => Promise<Opened>, topic: string): Promise<string[]> {
  const failed: string[] = []
  for (const { name, skip, run } of conformance({ open: openStore, timeout: 100 })) {
    if (skip || !name.startsWith(topic)) continue
    await run().catch(() => failed.push(name))
  }
  return failed
}

describe('the conformance suite', () => {
  it('names every case once, and gives every skip a reason', () => {
    const cases = conformance({ open })
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
    for (const { skip } of cases) expect(skip ?? 'a reason').not.toBe('')
    expect(cases.filter(({ skip }) => skip).map(({ name }) => name)).toEqual([
      'bad input: more claims of one lease than may be',
      'bad input: a grant with more claims than a lease may have',
      'bad input: more claims on one key than may be',
      'bad input: more leases under one parent than may be',
    ])
  })

  it('exempts a case by name, with a reason', () => {
    const name = 'bad input: a ttl that is 0'
    const exempt = { [name]: 'this engine counts in whole seconds' }
    const found = conformance({ open, exempt }).find((each) => each.name === name)
    expect(found?.skip).toBe('this engine counts in whole seconds')
  })

  it('refuses an exemption without a reason, and one that names no case', () => {
    expect(() => conformance({ open, exempt: { 'bad input: a ttl that is 0': ' ' } })).toThrow(
      "the exemption of 'bad input: a ttl that is 0' has no reason",
    )
    expect(() => conformance({ open, exempt: { 'leases: live for ever': 'why not' } })).toThrow(
      "there is no case 'leases: live for ever' to exempt",
    )
  })

  it.each(['timeout', 'patience'])('fails a case without notices after `%s`', async (option) => {
    const silent = openWith(() => ({ watch: () => ({ close: () => {} }) }))
    const name = 'watches: a watch of a prefix reports nothing about other keys'
    const found = conformance({ open: silent, [option]: 20 }).find((each) => each.name === name)!
    await expect(found.run()).rejects.toThrow(/^waited 20 ms for /)
  })

  it('requires a store without child leases to refuse them', async () => {
    const without = openWith((store) => ({
      guarantees: { ...store.guarantees, childLeases: false },
      grant: (request) => {
        if (request?.parent === undefined) return store.grant(request)
        const message = 'this store has no leases under leases: leave out parent'
        return Promise.reject(new LeaseholdError('unsupported', message))
      },
    }))
    expect(await failures(without, 'families')).toEqual([])
    const silent = openWith((store) => ({
      guarantees: { ...store.guarantees, childLeases: false },
      grant: ({ parent: _, ...request }) => store.grant(request),
    }))
    expect((await failures(silent, 'families')).length).toBeGreaterThan(5)
  })

  it('runs on an engine that others use at the same time', async () => {
    const { store, clock } = testStore()
    const shared = openWith(() => leftOpen(store))
    const sharing = async () => ({
      ...(await shared()),
      advance: (ms: number) => clock.advance(ms),
    })
    for (const { name, skip, run } of conformance({ open: sharing, shared: true })) {
      if (skip || name.startsWith('closing')) continue
      await store.grant({ holder: 'another', ttl: Infinity, claims: [{ key: name.slice(0, 50) }] })
      await run().catch((error) => expect.fail(`${name}: ${error.message}`))
    }
  }, 30_000)

  it.each<[string, string, (store: LeaseStore) => Partial<LeaseStore>]>([
    [
      'forgets request ids',
      'requests',
      (store) => ({
        claim: ({ request: _, ...call }) => store.claim(call),
      }),
    ],
    [
      'ignores ifFree',
      'claims',
      (store) => ({ claim: (call) => store.claim({ ...call, ifFree: false }) }),
    ],
    [
      'answers renewals without renewing',
      'leases',
      (store) => ({ renew: async () => ({ lost: [], capped: [] }), read: store.read.bind(store) }),
    ],
    [
      'reports every event on its key to a waiter',
      'waiting',
      (store) => ({
        watch: (target, observer) => {
          const own = store.watch(target, observer)
          if (!('lease' in target)) return own
          const all = store.watch({ prefix: '' }, observer)
          return {
            close: () => {
              own.close()
              all.close()
            },
          }
        },
      }),
    ],
    [
      'splits a revision',
      'watches',
      (store) => ({
        watch: (target, observer) =>
          store.watch(target, (notice) => {
            if (notice.type !== 'events') return observer(notice)
            for (const event of notice.events) {
              observer({ type: 'events', revision: event.revision, events: [event] })
            }
          }),
      }),
    ],
    [
      'calls the observer at once',
      'watches',
      (store) => ({
        watch: (target, observer) => {
          observer({ type: 'watching', revision: 0 })
          return store.watch(target, observer)
        },
      }),
    ],
    ['continues after it was closed', 'closing', () => ({ close: async () => {} })],
  ])('finds a store that %s', async (_, topic, change) => {
    expect(await failures(openWith(change), topic)).not.toEqual([])
  })
})
