import { describe, expect, it } from 'vitest'
import { Kernel } from '../../src/kernel/index.ts'
import type { Granted, LeaseId } from '../../src/port/index.ts'
import { type RecordedChange, Records } from './model/records.ts'

const NOW = 1_000_000
const limits = { page: 1, history: 16 }

function begin() {
  const records = new Records()
  const kernel = new Kernel({ changeSink: records, limits })
  const grant = (parent?: LeaseId) =>
    (kernel.grant({ holder: 'alice', ttl: 1000, parent, claims: [{ key: 'a' }] }, NOW) as Granted)
      .lease
  return { kernel, records, grant, end: (lease: LeaseId) => end(kernel, lease) }
}

function end(kernel: Kernel, lease: LeaseId): void {
  kernel.revoke({ target: { lease } }, NOW)
}

function rebuild(changes: readonly RecordedChange[], revision = 0, slots = 0): Kernel {
  const kernel = new Kernel({ limits, revision })
  const changeSink = kernel.replay()
  changeSink.covers(slots)
  kernel.startEvents(revision)
  for (const each of changes) each.replay(changeSink)
  kernel.finishReplay(NOW, NOW)
  return kernel
}

/** A rebuilt kernel, from a description of this one. */
function copyOf(kernel: Kernel): Kernel {
  const records = new Records()
  kernel.describe(0, kernel.slots, records)
  for (const _ of kernel.describeRetained(records));
  return rebuild(records.changes, kernel.revision, kernel.slots)
}

const request = { holder: 'bob', ttl: 1000, claims: [{ key: 'a' }, { key: 'b' }] }

describe('a rebuilt kernel', () => {
  it('gives new leases the same slots as the old one', () => {
    const { kernel, records, grant, end } = begin()
    const leases = Array.from({ length: 40 }, () => grant())
    for (const at of [3, 5, 33, 39]) end(leases[at]!)
    const copies = [rebuild(records.changes), copyOf(kernel)]
    for (let count = 0; count < 6; count++) {
      const answer = kernel.grant(request, NOW)
      for (const copy of copies) expect(copy.grant(request, NOW)).toEqual(answer)
    }
  })

  it('keeps children in the order of their grants, whatever their slots', () => {
    const { kernel, records, grant, end } = begin()
    const first = grant()
    const parent = grant()
    const older = grant(parent)
    end(first)
    const younger = grant(parent)
    expect([older, younger].map((id) => id.split('.')[0])).toEqual(['2', '0'])
    for (const copy of [rebuild(records.changes), copyOf(kernel)]) {
      const revoked = copy.revoke({ target: { parent } }, NOW)
      expect(revoked).toMatchObject({ leases: 1, more: true })
      expect(copy.reader.read({ lease: older })).toMatchObject({ lease: undefined })
      expect(copy.reader.read({ lease: younger })).toMatchObject({ lease: { id: younger } })
    }
  })

  it('has rows that were never used', () => {
    const { kernel, records, grant } = begin()
    const [one, two] = [grant(), grant()]
    const late = records.changes.filter(({ slot }) => slot === 1)
    const copy = rebuild(late, 0, 2)
    expect(copy.leases).toBe(1)
    expect(copy.reader.read({ lease: two })).toMatchObject({ lease: { id: two } })
    expect(copy.reader.read({ lease: one })).toMatchObject({ lease: undefined })
    expect(kernel.leases).toBe(2)
  })

  it('refuses impossible changes', () => {
    const { records, grant } = begin()
    grant()
    const { changes } = records
    const lease = { reason: 'released' } as const
    expect(() => rebuild([changes[0]!, changes[0]!])).toThrow('slot 0 has a lease already')
    const changeSink = rebuild([changes[0]!]).replay()
    expect(() => changeSink.ended(2, 1, NOW, lease)).toThrow('slot 1 has no lease')
    expect(() => changeSink.capped(2, 7, NOW, NOW, lease)).toThrow('slot 7 has no lease')
    expect(() => changeSink.released(2, 0, NOW, 'a', 1, lease)).toThrow('has no claim with token 1')
    changeSink.ended(2, 0, NOW, lease)
    expect(() => changeSink.updated(3, 0, NOW, 'a', 1, 'v')).toThrow('slot 0 has no lease')
  })

  it('starts its events at the given revision, but not before its own', () => {
    const kernel = new Kernel({ revision: 10 })
    kernel.startEvents(5)
    expect(kernel.events.completeAfter).toBe(10)
    kernel.startEvents(15)
    expect(kernel.events.completeAfter).toBe(15)
  })

  it('gives every lease its full ttl when the replay ends, even if nothing was replayed', () => {
    const kernel = new Kernel()
    const { lease } = kernel.grant({ holder: 'a', ttl: 100, maxLife: 500 }, NOW) as Granted
    kernel.finishReplay(NOW + 50, NOW)
    expect(kernel.reader.read({ lease })).toMatchObject({
      lease: { until: NOW + 150, endOfLife: NOW + 550 },
    })
  })

  it('continues above the revision that it skips to, and never below its own', () => {
    const kernel = new Kernel()
    kernel.skipTo(5)
    expect(kernel.revision).toBe(5)
    kernel.skipTo(3)
    expect(kernel.revision).toBe(5)
    expect([0, 1, 3, 4, 5].map((from) => kernel.events.continuesFrom(from))).toEqual([
      true,
      false,
      false,
      false,
      true,
    ])
    expect(kernel.grant(request, NOW)).toMatchObject({ revision: 6, token: 6 })
  })
})

describe('a kernel', () => {
  it('returns whether more leases may be due', () => {
    const { kernel, grant } = begin()
    for (let count = 0; count < 3; count++) grant()
    expect(kernel.expire(NOW + 999, 5)).toBe(false)
    expect(kernel.expire(NOW + 1000, 2)).toBe(true)
    expect(kernel.expire(NOW + 1000, 1)).toBe(false)
    expect(kernel.leases).toBe(0)
  })

  it('neither records nor retains an answer to a call without a request id', () => {
    const { kernel, records, grant } = begin()
    grant()
    const refusal = { code: 'storage-full', message: 'full' } as const
    kernel.grant(request, NOW, refusal)
    for (const _ of kernel.describeRetained(records));
    expect(records.changes.map(({ kind }) => kind)).toEqual(['granted', 'claimed'])
    kernel.grant({ ...request, request: 'r' }, NOW)
    expect(records.changes.filter(({ kind }) => kind === 'answered')).toHaveLength(1)
  })

  it('ends an overdue lease at the front of a key before it adds a claim', () => {
    const { kernel, grant } = begin()
    const lease = grant()
    const other = { ...request, claims: [{ key: 'a' }], ifFree: true }
    expect(kernel.grant(other, NOW + 999)).toMatchObject({ outcome: 'busy' })
    expect(kernel.grant(other, NOW + 1000)).toMatchObject({ outcome: 'granted', holds: true })
    expect(kernel.endOf(lease)).toEqual({ reason: 'expired' })
    expect(kernel.endOf(`x.${lease.split('.')[1]}`)).toBeUndefined()
  })

  it('breaks a lease once, and never later than its earlier end', () => {
    const { kernel, grant } = begin()
    const lease = grant()
    const cap = (after: number) => kernel.revoke({ target: { lease }, after }, NOW)
    expect([cap(500), cap(500), cap(600)]).toMatchObject([
      { leases: 1, revision: 2 },
      { leases: 0, revision: 2 },
      { leases: 0, revision: 2 },
    ])
  })

  it('does not cap renewals of a lease that never ends', () => {
    const kernel = new Kernel()
    const { lease } = kernel.grant({ holder: 'a', ttl: Infinity }, NOW) as Granted
    expect(kernel.renew([lease], NOW)).toEqual({ lost: [], capped: [] })
  })
})
