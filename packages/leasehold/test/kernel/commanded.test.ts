import { describe, expect, it } from 'vitest'
import { Kernel } from '../../src/kernel/index.ts'
import type { Claimed, Granted, GrantRequest, KeyReading } from '../../src/port/index.ts'

const NOW = 1_000_000

function begin(expiry: 'timed' | 'commanded') {
  const kernel = new Kernel({ expiry })
  const grant = (request: Partial<GrantRequest> = {}) => {
    const { lease } = kernel.grant({ holder: 'a', ttl: 100, ...request }, NOW) as Granted
    return { lease, slot: kernel.bySlot.slotOf(lease) }
  }
  const holderOf = (key: string) => (kernel.reader.read({ key }) as KeyReading).claims[0]?.lease
  return { kernel, grant, holderOf }
}

describe('a kernel with commanded expiry', () => {
  it('never expires a lease by itself, however late it is', () => {
    const { kernel, grant, holderOf } = begin('commanded')
    const { lease } = grant({ claims: [{ key: 'k' }] })
    expect(kernel.nextDeadline).toBe(Infinity)
    expect(kernel.expire(NOW + 5000, 10)).toBe(false)
    const other = grant({ ttl: 10_000 }).lease
    const late = kernel.claim({ lease: other, claims: [{ key: 'k' }] }, NOW + 5000) as Claimed
    expect(late.holds).toBe(false)
    expect(holderOf('k')).toBe(lease)
  })

  it('never expires a lease by itself after a rebuild either', () => {
    const { kernel, grant } = begin('commanded')
    grant()
    kernel.finishReplay(NOW, NOW)
    expect(kernel.nextDeadline).toBe(Infinity)
    expect(kernel.expire(NOW + 5000, 10)).toBe(false)
    expect(kernel.leases).toBe(1)
  })

  it('ends the given leases, each with all descendants in one revision', () => {
    const { kernel, grant } = begin('commanded')
    const [first, second] = [grant(), grant()]
    const child = grant({ parent: first.lease })
    const before = kernel.revision
    kernel.bySlot.expire([first.slot, second.slot], NOW + 1, 'ttl')
    expect([kernel.leases, kernel.revision]).toEqual([0, before + 2])
    for (const { lease } of [first, second, child]) {
      expect(kernel.endOf(lease)).toEqual({ reason: 'expired' })
    }
  })

  it('reports the given cause of an expiry, whatever its own times say', () => {
    const { kernel, grant } = begin('commanded')
    const [first, second] = [grant(), grant()]
    for (const { lease } of [first, second]) {
      kernel.revoke({ target: { lease }, by: 'bob', why: 'disk full', after: 50 }, NOW)
    }
    kernel.bySlot.expire([first.slot], NOW + 10_000, 'ttl')
    kernel.bySlot.expire([second.slot], NOW, 'life')
    expect(kernel.endOf(first.lease)).toEqual({ reason: 'expired' })
    expect(kernel.endOf(second.lease)).toMatchObject({ reason: 'broken', why: 'disk full' })
  })

  it('skips a slot whose lease has ended', () => {
    const { kernel, grant } = begin('commanded')
    const parent = grant()
    const { slot } = grant({ parent: parent.lease })
    kernel.bySlot.expire([parent.slot, slot, slot], NOW + 1, 'ttl')
    expect([kernel.leases, kernel.revision]).toEqual([0, 3])
  })
})

describe('a kernel with a clock', () => {
  it('ends an overdue lease by itself, also before another claim on its key', () => {
    const { kernel, grant, holderOf } = begin('timed')
    grant({ claims: [{ key: 'k' }] })
    expect(kernel.nextDeadline).toBe(NOW + 100)
    const other = grant({ ttl: 10_000 }).lease
    kernel.claim({ lease: other, claims: [{ key: 'k' }] }, NOW + 100)
    expect(holderOf('k')).toBe(other)
    grant()
    expect(kernel.expire(NOW + 100, 10)).toBe(false)
    expect(kernel.leases).toBe(1)
  })
})

describe('a lease by its slot', () => {
  it('is found while it lives', () => {
    const { kernel, grant } = begin('commanded')
    const { lease, slot } = grant()
    expect([kernel.bySlot.slotOf(lease), kernel.bySlot.born(slot)]).toEqual([0, 1])
    expect([kernel.bySlot.slotOf('0.9'), kernel.bySlot.born(slot + 1)]).toEqual([-1, 0])
    expect(kernel.bySlot.born(kernel.slots + 1000)).toBe(0)
    while (kernel.slots < 32) grant()
    expect([kernel.bySlot.born(31), kernel.bySlot.born(32)]).toEqual([32, 0])
    kernel.bySlot.expire([slot], NOW, 'ttl')
    expect([kernel.bySlot.slotOf(lease), kernel.bySlot.born(slot)]).toEqual([-1, 0])
  })

  it('has the time of its renewal, which can be restored after a replay', () => {
    const { kernel, grant } = begin('commanded')
    const { slot } = grant()
    expect(kernel.bySlot.renewedAt(slot)).toBe(NOW)
    kernel.bySlot.renew(slot, NOW + 50)
    expect(kernel.bySlot.renewedAt(slot)).toBe(NOW + 50)
    kernel.bySlot.restoreRenewal(slot, NOW + 20)
    expect(kernel.bySlot.renewedAt(slot)).toBe(NOW + 20)
  })

  it('has the break that limits its life', () => {
    const { kernel, grant } = begin('commanded')
    const { lease, slot } = grant()
    expect(kernel.bySlot.cappedBy(slot)).toBeUndefined()
    kernel.revoke({ target: { lease }, by: 'bob', why: 'disk full', after: 50 }, NOW)
    const end = { reason: 'broken', by: 'bob', why: 'disk full' }
    expect(kernel.bySlot.cappedBy(slot)).toEqual(end)
  })

  it('returns on renewal how long it may live, if that is less than its ttl', () => {
    const { kernel, grant } = begin('commanded')
    const [plain, mortal] = [grant().slot, grant({ maxLife: 250 }).slot]
    expect(kernel.bySlot.renew(plain, NOW + 1)).toBe(Infinity)
    expect(kernel.bySlot.renew(mortal, NOW + 149)).toBe(Infinity)
    expect(kernel.bySlot.renew(mortal, NOW + 150)).toBe(100)
    expect(kernel.bySlot.renew(mortal, NOW + 200)).toBe(50)
    expect(kernel.bySlot.renew(mortal, NOW + 300)).toBe(0)
  })
})
