import { describe, expect, it } from 'vitest'
import { Leasehold, LeaseholdError, type LeaseStore } from '../../../../src/index.ts'
import { usageOf, usageRecordFrom } from '../../../../src/recipes/pool/usage/usage.ts'
import { UsageRecords } from '../../../../src/recipes/pool/usage/usage-records.ts'
import { memoryStore } from '../../../../src/stores/memory/index.ts'
import { TestClock } from '../../../../src/testing/index.ts'
import { changedStore } from '../../../setup/changed-store.ts'

const MINUTE = 60_000
const RECORDS = 'pool/p/books'
const POOL = { resources: [{ name: 'gpu' }], halfLife: '1m' } as const

interface Work {
  readonly tenant: string
  readonly held?: number
}

/** A separate client takes the resource for each tenant in turn, and closes. */
async function work(store: LeaseStore, clock: TestClock, works: readonly Work[]): Promise<void> {
  const leasehold = await Leasehold.open(store, { clock })
  for (const { tenant, held = 1000 } of works) {
    const permit = await leasehold.pool('p', POOL).take({ tenant, kind: 'k' })
    await clock.advance(held)
    await permit.release()
  }
  await leasehold.close()
}

/** The part of all usage of each tenant. */
async function usage(store: LeaseStore, clock: TestClock): Promise<Map<string, number>> {
  const { claims } = await store.read({ key: RECORDS, limit: 1000 })
  const records = claims.map(({ value }) => usageRecordFrom(value))
  const used = usageOf(records, [], clock.now(), MINUTE)
  const sum = [...used.values()].reduce((total, each) => total + each, 0)
  return new Map([...used].map(([tenant, each]) => [tenant, each / sum]))
}

describe('the usage records of a pool', () => {
  it('keep the usage of clients whose records were merged', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    await work(store, clock, [{ tenant: 'heavy', held: 2 * MINUTE }])
    // More clients than records are kept.
    for (let at = 0; at < 30; at++) await work(store, clock, [{ tenant: 'light' }])
    const used = await usage(store, clock)
    expect([...used.keys()].sort()).toEqual(['heavy', 'light'])
    // 2 minutes, decayed for half a minute, against half a minute.
    expect(used.get('heavy')!).toBeGreaterThan(0.6)
  })

  it('live for ten half-lives after their last write', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const leasehold = await Leasehold.open(store, { clock })
    const use = async () => {
      const permit = await leasehold.pool('p', POOL).take({ tenant: 't', kind: 'k' })
      await permit.release()
    }
    const records = async () => (await store.read({ key: RECORDS })).count
    await use()
    await clock.advance(8 * MINUTE)
    await use()
    await clock.advance(8 * MINUTE)
    expect(await records()).toBe(1)
    await clock.advance(3 * MINUTE)
    expect(await records()).toBe(0)
    await leasehold.close()
  })
})

describe('the record of one process', () => {
  /** A writer of usage records, with what the store has, oldest first, and its events. */
  function writer(change: (store: LeaseStore) => Partial<LeaseStore> = () => ({})) {
    const clock = new TestClock()
    const memory = memoryStore({ clock })
    const store = changedStore(memory, change(memory))
    const reported: unknown[] = []
    const emit = ({ event, level }: { event: string; level: string }) =>
      reported.push([event, level])
    const records = new UsageRecords({ store, holder: 'h', emit } as never, RECORDS)
    const claims = async () => {
      await clock.settle()
      return (await memory.read({ key: RECORDS, limit: 1000 })).claims
    }
    const written = async () => (await claims()).map(({ value }) => usageRecordFrom(value))
    return { records, memory, reported, claims, written }
  }
  const permit = (token: number, more: object = {}) => ({
    token,
    tenant: `t${token}`,
    cost: 1,
    since: 0,
    booked: 1000,
    ...more,
  })

  it('has at most 256 open permits', async () => {
    const { records, written } = writer()
    for (let token = 0; token < 257; token++) records.opened(permit(token), MINUTE)
    const [record] = await written()
    expect(record!.open).toHaveLength(256)
    expect(record!.open.at(-1)).toEqual(permit(255))
  })

  it('is one, and includes changes made during a write', async () => {
    const { records, written } = writer()
    records.opened(permit(1), MINUTE)
    records.opened(permit(2), MINUTE)
    records.extended(1, 5000)
    const all = await written()
    expect(all.map(({ open }) => open)).toEqual([[permit(1, { booked: 5000 }), permit(2)]])
  })

  it('is written when a change is confirmed, also during another write', async () => {
    const { records, memory } = writer()
    records.opened(permit(1), MINUTE)
    await records.closed(permit(1), 'k', 1000, MINUTE)
    const { claims } = await memory.read({ key: RECORDS })
    expect(usageRecordFrom(claims[0]!.value)).toMatchObject({
      open: [],
      accounts: { t1: { at: 1000 } },
      kinds: { k: { 0: 1 } },
    })
  })

  it('ignores a permit that was never opened', async () => {
    const { records, written } = writer()
    records.extended(7, 5000)
    expect(await written()).toEqual([])
  })

  it('is started again if another process has merged it', async () => {
    const { records, memory, claims, written } = writer()
    await records.closed(permit(1), undefined, 1000, MINUTE)
    const [first] = await claims()
    await memory.revoke({ target: { lease: first!.lease } })
    await records.closed(permit(2), undefined, 1000, MINUTE)
    const all = await written()
    expect(all.map(({ accounts }) => Object.keys(accounts))).toEqual([['t2']])
  })

  it('is started again at the next change if the store was busy', async () => {
    let calls = 0
    const { records, reported, claims } = writer((store) => ({
      grant: (request) =>
        ++calls === 1 ? Promise.resolve({ outcome: 'busy' } as never) : store.grant(request),
    }))
    await records.closed(permit(1), undefined, 1000, MINUTE)
    await records.closed(permit(2), undefined, 1000, MINUTE)
    expect(await claims()).toHaveLength(1)
    expect(reported).toEqual([])
  })

  it('keeps the 64 kinds that were seen last', async () => {
    const { records, written } = writer()
    for (let at = 0; at < 64; at++) await records.closed(permit(at), `k${at}`, 1000, MINUTE)
    await records.closed(permit(64), 'k0', 1000, MINUTE)
    await records.closed(permit(65), 'new', 1000, MINUTE)
    const [{ kinds }] = (await written()) as [ReturnType<typeof usageRecordFrom>]
    expect(Object.keys(kinds)).toHaveLength(64)
    expect(kinds).toMatchObject({ k0: { 0: 2 }, new: { 0: 1 } })
    expect(kinds).not.toHaveProperty('k1')
  })

  it('forgets the tenant with the least remaining usage', async () => {
    const { records, written } = writer()
    const light = { since: 30 * MINUTE }
    const done: Promise<void>[] = []
    for (let token = 0; token < 257; token++) {
      const entry = token === 100 ? permit(100, { cost: 1000 }) : permit(token, light)
      done.push(records.closed(entry, undefined, 1000, MINUTE))
    }
    await Promise.all(done)
    const [{ accounts }] = (await written()) as [ReturnType<typeof usageRecordFrom>]
    expect(Object.keys(accounts)).toHaveLength(256)
    expect(accounts).not.toHaveProperty('t100')
  })
})

describe('surplus usage records', () => {
  const clock = new TestClock()
  const OPEN = [{ token: 1, tenant: 't', cost: 1, since: 0, booked: 1000 }]
  const ENTRY = { token: 5000, tenant: 'own', cost: 1, since: 0, booked: 1000 }

  /** A process starts a record beside this many others, the oldest of which are idle. */
  async function begin(
    idle: number,
    busy: number,
    change: (store: LeaseStore) => Partial<LeaseStore> = () => ({}),
  ) {
    const memory = memoryStore({ clock })
    for (let at = 0; at < idle + busy; at++) {
      const accounts = { [`t${at}`]: { used: 1, at: 0 } }
      const value = JSON.stringify({ open: at < idle ? [] : OPEN, accounts, kinds: {} })
      const claims = [{ key: RECORDS, mode: 'shared', value }] as const
      await memory.grant({ holder: 'other', ttl: 60_000, claims })
    }
    const reported: unknown[] = []
    const emit = ({ event, level }: { event: string; level: string }) =>
      reported.push([event, level])
    const client = { store: changedStore(memory, change(memory)), holder: 'h', emit }
    const records = new UsageRecords(client as never, RECORDS)
    await records.closed(ENTRY, undefined, 1000, MINUTE)
    await clock.settle()
    const { claims, count } = await memory.read({ key: RECORDS, limit: 1000 })
    const own = claims.find(({ holder }) => holder === 'h')
    return { count, reported, accounts: Object.keys(usageRecordFrom(own?.value).accounts) }
  }

  it('are merged until eight are left, if they have no open permit', async () => {
    const { count, accounts } = await begin(12, 0)
    expect(count).toBe(8)
    expect(accounts.sort()).toEqual(['own', 't0', 't1', 't2', 't3', 't4'])
  })

  it('stay if they have open permits, and so does the new one', async () => {
    const { count, accounts } = await begin(0, 12)
    expect([count, accounts]).toEqual([13, ['own']])
  })

  it('are merged until 64 are left, even with open permits', async () => {
    const { count, accounts } = await begin(2, 66)
    expect(count).toBe(64)
    expect(accounts.sort()).toEqual(['own', 't0', 't1', 't2', 't3', 't4'])
  })

  it('are left to the process that ended their lease first', async () => {
    const { reported, accounts } = await begin(10, 0, (store) => {
      let calls = 0
      return {
        revoke: async (request) => {
          if (++calls === 1) throw new LeaseholdError('lease-not-found', 'it is gone')
          return store.revoke(request)
        },
      }
    })
    expect(accounts.sort()).toEqual(['own', 't1', 't2'])
    expect(reported).toEqual([])
  })

  it('stay unchanged if the store fails, which is reported', async () => {
    const { count, reported, accounts } = await begin(10, 0, () => ({
      revoke: () => Promise.reject(new LeaseholdError('storage-failed', 'the disk fails')),
    }))
    expect([count, accounts]).toEqual([11, ['own']])
    expect(reported).toEqual([['usage-record', 'warn']])
  })
})
