import { memoryStore } from 'leasehold/memory'
import type { Granted, LeaseStore } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { Accounts } from '../../../src/access/quotas/accounts.ts'
import { OWNER_LABEL } from '../../../src/access/quotas/owner-label.ts'
import type { Quota } from '../../../src/access/quotas/quota.ts'
import { changedStore, Gate } from '../../setup/changed-store.ts'
import { refused } from '../scene.ts'

const FULL = refused('limit-exceeded')

/** Accounts on a store in which a read of all leases takes this many milliseconds. */
function scene(quotas: Record<string, Quota>, tookMs = 10) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  let counts = 0
  let looks = 0
  let claims = 0
  const held: { gate?: Gate; fault?: Error; lookMs?: number; lookGate?: Gate } = {}
  const read = async (query: { readonly leases?: true; readonly lease?: string }) => {
    const reading = await inner.read(query as never)
    if (query.lease !== undefined) {
      looks++
      await held.lookGate?.opened
      await clock.advance(held.lookMs ?? 0)
    }
    if (query.leases === undefined) return reading
    counts++
    await held.gate?.opened
    if (held.fault !== undefined) throw held.fault
    await clock.advance(tookMs)
    return reading
  }
  const store = changedStore(inner, {
    read: read as never,
    claim: (request) => {
      claims++
      return inner.claim(request)
    },
  })
  const accounts = new Accounts(store, clock, (name) => quotas[name])
  /** As a second server grants it. */
  const elsewhere = async (name: string, keys: readonly string[] = [], tag?: string) => {
    const labels = { [OWNER_LABEL]: tag === undefined ? name : `${name} ${tag}` }
    const wanted = keys.map((key) => ({ key }))
    const given = await inner.grant({
      ...{ holder: 'h', ttl: 60_000, labels },
      ...(wanted.length > 0 && { claims: wanted }),
    })
    return (given as Granted).lease
  }
  const grant = (name: string, keys: readonly string[] = [], tag?: string) =>
    accounts.grant(accounts.of(name), keys.length, tag, async () => {
      const lease = await elsewhere(name, keys, tag)
      return { outcome: 'granted', lease } as Granted
    })
  const claim = (name: string, lease: string, keys: readonly string[], request?: string) => {
    const asked = { lease, claims: keys.map((key) => ({ key })), request, ifFree: request === 'if' }
    return accounts.claim(accounts.of(name), asked, () => store.claim(asked))
  }
  const usage = (name: string) => {
    const { leases, claims, refused: refusals } = accounts.usage().get(name)!
    return [leases, claims, refusals]
  }
  const calls = () => ({ counts, looks, claims })
  return {
    clock,
    inner,
    store: store as LeaseStore,
    accounts,
    held,
    elsewhere,
    grant,
    claim,
    usage,
    calls,
  }
}

describe('accounts', () => {
  it('count a principal at its first call, although all were counted a short time ago', async () => {
    const { accounts, elsewhere, grant, usage, calls, clock } = scene({
      ...{ ann: { leases: 5 }, bob: { leases: 1 } },
    })
    await grant('ann')
    await elsewhere('bob')
    await expect(grant('bob')).rejects.toThrowError(FULL)
    expect([usage('bob'), calls().counts]).toEqual([[1, 0, 1], 2])
    await accounts.refresh()
    expect(calls().counts).toBe(2)
    await clock.advance(200)
    await accounts.refresh()
    expect(calls().counts).toBe(3)
  })

  it('count several concurrent calls with one read', async () => {
    const { grant, calls, held } = scene({ ann: { leases: 2 } })
    held.gate = new Gate()
    const grants = Promise.allSettled([grant('ann'), grant('ann'), grant('ann')])
    held.gate.open()
    const statuses = (await grants).map(({ status }) => status)
    expect(statuses.sort()).toEqual(['fulfilled', 'fulfilled', 'rejected'])
    expect(calls().counts).toBe(1)
  })

  it('do not wait for a count that takes long, unless the principal was never counted', async () => {
    const { grant, held, clock, calls, elsewhere, usage } = scene(
      {
        ...{ ann: { leases: 3 }, bob: { leases: 3 } },
      },
      101,
    )
    await grant('ann')
    await clock.advance(101 * 20)
    held.gate = new Gate()
    held.fault = new Error('the store is away')
    await grant('ann')
    expect(calls().counts).toBe(2)
    const first = grant('bob').catch((error) => error)
    held.gate.open()
    expect(await first).toBe(held.fault)
    delete held.fault
    await elsewhere('ann')
    await clock.advance(101 * 20)
    await grant('bob')
    expect(usage('ann')).toEqual([3, 0, 0])
  })

  it('wait for a count that takes a tenth of a second', async () => {
    const { grant, elsewhere, clock } = scene({ ann: { leases: 2 } }, 100)
    await grant('ann')
    await elsewhere('ann')
    await clock.advance(2000)
    await expect(grant('ann')).rejects.toThrowError(FULL)
  })

  it('count all leases, page by page, without those of others', async () => {
    const { accounts, elsewhere, usage, inner, calls } = scene({ ann: { leases: 9999 } })
    for (let at = 0; at < 1001; at++) await elsewhere('ann')
    await elsewhere('bob', ['a', 'b'])
    await inner.grant({ holder: 'nobody', ttl: 60_000, claims: [{ key: 'c' }] })
    await accounts.refresh()
    expect([usage('ann'), usage('bob'), calls().counts]).toEqual([[1001, 0, 0], [1, 2, 0], 2])
    expect([...accounts.usage().keys()]).toEqual(['ann', 'bob'])
    expect([accounts.of('ann').leases.size, accounts.of('bob').leases.size]).toEqual([1001, 0])
  })

  it('follow a quota that was given or taken away', async () => {
    const quotas: Record<string, Quota> = { ann: { claims: 3 } }
    const { accounts, elsewhere, usage, clock } = scene(quotas)
    const ended = await elsewhere('ann', ['a'])
    await elsewhere('ann', ['b'])
    await accounts.refresh()
    const account = accounts.of('ann')
    expect([usage('ann'), account.leases.size, account.isCounted]).toEqual([[2, 2, 0], 2, true])
    delete quotas['ann']
    await clock.advance(200)
    await accounts.refresh()
    expect([usage('ann'), account.leases.size, account.isCounted]).toEqual([[2, 2, 0], 0, false])
    accounts.touch(ended)
    expect(account.stale.size).toBe(0)
    quotas['ann'] = { leases: 1 }
    await clock.advance(60_000)
    await accounts.refresh()
    expect([usage('ann'), account.isCounted]).toEqual([[0, 0, 0], true])
  })

  it('read again only used accounts, and forget ended leases', async () => {
    const { accounts, grant, calls, inner, usage } = scene({ ann: { leases: 9 } })
    const ids: string[] = []
    for (let at = 0; at < 3; at++) ids.push(((await grant('ann', [`k${at}`])) as Granted).lease)
    await accounts.refresh()
    const before = calls().looks
    await accounts.refresh()
    expect(calls().looks).toBe(before)
    await inner.revoke({ target: { lease: ids[1]! } })
    accounts.touch(ids[1]!)
    accounts.touch('unknown')
    await accounts.refresh()
    expect([calls().looks, usage('ann')]).toEqual([before + 1, [2, 2, 0]])
    accounts.forget(ids[0]!)
    accounts.forget('unknown')
    expect(usage('ann')).toEqual([1, 1, 0])
  })

  it('read all leases before they refuse, at a pace', async () => {
    const { grant, inner, calls, usage } = scene({ ann: { leases: 2 } })
    const first = (await grant('ann')) as Granted
    await grant('ann')
    await expect(grant('ann')).rejects.toThrowError(FULL)
    await inner.revoke({ target: { lease: first.lease } })
    await grant('ann')
    expect(usage('ann')).toEqual([2, 0, 1])
    expect(calls().counts).toBe(1)
  })

  it('let a principal without a quota do everything, and read nothing for it', async () => {
    const { grant, claim, calls } = scene({ ann: { leases: 1 } })
    const { lease } = (await grant('bob', ['a'])) as Granted
    await claim('bob', lease, ['b'])
    expect(calls()).toMatchObject({ counts: 0, looks: 0 })
  })

  it('charge claims to the owner of the lease', async () => {
    const { grant, claim, elsewhere, usage, inner } = scene({
      ...{ ann: { claims: 2 }, eve: { claims: 9 }, cat: { callsPerSecond: 5 } },
    })
    const { lease: own } = (await grant('ann', ['a'])) as Granted
    await claim('bob', own, ['b'])
    await expect(claim('bob', own, ['c'])).rejects.toThrowError(FULL)
    expect(usage('ann')).toEqual([1, 2, 1])
    const other = await elsewhere('ann')
    await expect(claim('eve', other, ['d'])).rejects.toThrowError(/"ann" may use at most 2 claims/)
    const cats = await elsewhere('cat')
    await claim('eve', cats, ['e'])
    const nobodys = (await inner.grant({ holder: 'h', ttl: 1000 })) as Granted
    await claim('eve', nobodys.lease, ['f'])
    await expect(claim('eve', '99.99', ['g'])).rejects.toThrowError(refused('lease-not-found'))
    expect(usage('eve')).toEqual([0, 0, 0])
  })

  it('answer a repeated request although there is no room, and undo a new one', async () => {
    const { grant, claim, inner, usage } = scene({ ann: { leases: 1, claims: 1 } })
    const { lease: own } = (await grant('ann', [], 'tag')) as Granted
    const first = await claim('ann', own, ['a'], 'r')
    expect(await claim('ann', own, ['a'], 'r')).toEqual(first)
    await expect(claim('ann', own, ['a'])).rejects.toThrowError(FULL)
    await expect(claim('ann', own, ['a', 'b'], 's')).rejects.toThrowError(FULL)
    await expect(claim('ann', own, ['a'], 's')).rejects.toThrowError(FULL)
    expect((await inner.read({ key: 'a' })).count).toBe(1)
    expect(usage('ann')[2]).toBe(3)
    await expect(grant('ann', [], 'other')).rejects.toThrowError(FULL)
    await expect(grant('ann')).rejects.toThrowError(FULL)
  })

  it('do not reserve for a grant that was carried out before', async () => {
    const { accounts, grant, usage } = scene({ ann: { leases: 1 } })
    const first = (await grant('ann', [], 'tag')) as Granted
    const again = await accounts.grant(accounts.of('ann'), 0, 'tag', async () => first)
    expect([again, usage('ann')]).toEqual([first, [1, 0, 0]])
    const busy = { outcome: 'busy' } as never
    expect(await accounts.grant(accounts.of('ann'), 0, 'tag', async () => busy)).toBe(busy)
    expect(usage('ann')).toEqual([1, 0, 0])
  })

  it('accept their reads, except for accounts that were used meanwhile', async () => {
    const { accounts, grant, claim, held, inner, clock, usage } = scene({ ann: { claims: 9 } }, 101)
    const { lease: used } = (await grant('ann', ['a'])) as Granted
    const { lease: changed } = (await grant('ann', ['b'])) as Granted
    const { lease: ended } = (await grant('ann', ['c'])) as Granted
    await accounts.refresh()
    expect(usage('ann')).toEqual([3, 3, 0])
    await inner.claim({ lease: changed, claims: [{ key: 'd' }, { key: 'e' }] })
    await inner.revoke({ target: { lease: ended } })
    await clock.advance(101 * 20)
    held.gate = new Gate()
    const counting = accounts.refresh()
    await clock.advance(0)
    // These do not wait for the count, which has read the leases before.
    await claim('ann', used, ['f'])
    await grant('ann', ['g'])
    held.gate.open()
    await counting
    expect(usage('ann')).toEqual([3, 6, 0])
    expect(accounts.of('ann').leases.get(used)).toMatchObject({ claims: 2, version: 2 })
    expect(accounts.of('ann').leases.has(ended)).toBe(false)
  })

  it('do not take an old reading of one lease either', async () => {
    const { accounts, grant, claim, held, clock, usage } = scene({ ann: { claims: 9 } })
    const ids: string[] = []
    for (const key of ['a', 'b', 'c']) ids.push(((await grant('ann', [key])) as Granted).lease)
    held.lookGate = new Gate()
    const reading = accounts.refresh()
    await clock.advance(0)
    await claim('ann', ids[0]!, ['d'])
    accounts.forget(ids[1]!)
    held.lookGate.open()
    await reading
    expect(usage('ann')).toEqual([2, 3, 0])
    expect([...accounts.of('ann').stale]).toEqual([ids[0]])
    held.lookGate = new Gate()
    const second = accounts.refresh()
    await clock.advance(0)
    accounts.forget(ids[0]!)
    held.lookGate.open()
    await second
    expect(usage('ann')).toEqual([1, 1, 0])
  })

  it('read leases only if there is no room, and all of them at a limited rate', async () => {
    const { grant, held, calls, clock } = scene({ ann: { leases: 3 } })
    held.lookMs = 1
    for (const _ of [1, 2, 3]) await grant('ann')
    expect(calls().looks).toBe(0)
    await expect(grant('ann')).rejects.toThrowError(FULL)
    expect(calls().looks).toBe(6)
    await expect(grant('ann')).rejects.toThrowError(FULL)
    expect(calls().looks).toBe(6)
    await clock.advance(60)
    await expect(grant('ann')).rejects.toThrowError(FULL)
    expect(calls().looks).toBe(9)
  })

  it('stop reading when usage has made room', async () => {
    const { accounts, grant, inner, calls } = scene({ ann: { leases: 2 } })
    const { lease } = (await grant('ann')) as Granted
    await grant('ann')
    await accounts.refresh()
    const { looks } = calls()
    await inner.revoke({ target: { lease } })
    accounts.touch(lease)
    await grant('ann')
    expect(calls().looks).toBe(looks + 1)
  })

  it('charge nothing for a busy key or a repeated request', async () => {
    const { accounts, inner, grant, claim, elsewhere, usage, calls } = scene({
      ann: { leases: 2, claims: 2 },
    })
    const { lease: own } = (await grant('ann', [], 'one')) as Granted
    await grant('ann', [], 'two')
    await elsewhere('bob', ['taken'])
    expect((await claim('ann', own, ['taken'], 'if')).outcome).toBe('busy')
    expect(usage('ann')).toEqual([2, 0, 0])
    await claim('ann', own, ['a'])
    const again = { outcome: 'granted', lease: own } as Granted
    for (const tag of ['one', 'two']) {
      await accounts.grant(accounts.of('ann'), 0, tag, async () => again)
    }
    expect(usage('ann')).toEqual([2, 1, 0])
    await claim('ann', own, ['b'])
    // The lease has the keys, but no request that could be repeated; or it is busy.
    const { claims } = calls()
    await expect(claim('ann', own, ['a', 'b'])).rejects.toThrowError(FULL)
    expect(calls().claims).toBe(claims)
    expect((await claim('ann', own, ['a'], 'if')).outcome).toBe('busy')
    // Even if the store has changed otherwise meanwhile.
    const asked = { lease: own, claims: [{ key: 'a' }], request: 'late', ifFree: true }
    const late = await accounts.claim(accounts.of('ann'), asked, async () => {
      await elsewhere('bob', ['another'])
      return inner.claim(asked)
    })
    expect([late.outcome, usage('ann')]).toEqual(['busy', [2, 2, 1]])
  })

  it('keep nothing for a repeated grant while it is answered', async () => {
    const { accounts, grant, inner, usage } = scene({ ann: { leases: 1 } })
    const first = (await grant('ann', [], 'tag')) as Granted
    const gate = new Gate()
    const repeated = accounts.grant(accounts.of('ann'), 0, 'tag', async () => {
      await gate.opened
      return { outcome: 'busy' } as never
    })
    await accounts.refresh()
    await inner.revoke({ target: { lease: first.lease } })
    accounts.touch(first.lease)
    await grant('ann', [], 'other')
    gate.open()
    await repeated
    expect(usage('ann')).toEqual([1, 0, 0])
  })
})
