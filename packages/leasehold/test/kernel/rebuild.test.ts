import { describe, expect, it } from 'vitest'
import { Kernel } from '../../src/kernel/index.ts'
import type { Granted, LeaseId } from '../../src/port/index.ts'
import { Records, type Told } from '../kernel-model/records.ts'

const NOW = 1_000_000
const limits = { page: 1, history: 16 }

function begin() {
  const records = new Records()
  const kernel = new Kernel({ journal: records, limits })
  const grant = (parent?: LeaseId) =>
    (kernel.grant({ holder: 'alice', ttl: 1000, parent, claims: [{ key: 'a' }] }, NOW) as Granted)
      .lease
  return { kernel, records, grant, end: (lease: LeaseId) => end(kernel, lease) }
}

function end(kernel: Kernel, lease: LeaseId): void {
  kernel.revoke({ target: { lease } }, NOW)
}

function rebuild(told: readonly Told[], revision = 0, slots = 0): Kernel {
  const kernel = new Kernel({ limits, revision })
  const journal = kernel.replay()
  journal.covers(slots)
  kernel.startEvents(revision)
  for (const each of told) each.tell(journal)
  kernel.settle(NOW, NOW)
  return kernel
}

/** A rebuilt kernel, from a description of this one. */
function copyOf(kernel: Kernel): Kernel {
  const records = new Records()
  kernel.describe(0, kernel.slots, records)
  for (const _ of kernel.describeMemory(records));
  return rebuild(records.told, kernel.revision, kernel.slots)
}

const request = { holder: 'bob', ttl: 1000, claims: [{ key: 'a' }, { key: 'b' }] }

describe('a kernel that is rebuilt', () => {
  it('gives new leases the slots that the old one gives them', () => {
    const { kernel, records, grant, end } = begin()
    const leases = Array.from({ length: 40 }, () => grant())
    for (const at of [3, 5, 33, 39]) end(leases[at]!)
    const copies = [rebuild(records.told), copyOf(kernel)]
    for (let count = 0; count < 6; count++) {
      const answer = kernel.grant(request, NOW)
      for (const copy of copies) expect(copy.grant(request, NOW)).toEqual(answer)
    }
  })

  it('keeps children in the order in which they were granted, whatever their slots', () => {
    const { kernel, records, grant, end } = begin()
    const first = grant()
    const parent = grant()
    const older = grant(parent)
    end(first)
    const younger = grant(parent)
    expect([older, younger].map((id) => id.split('.')[0])).toEqual(['2', '0'])
    for (const copy of [rebuild(records.told), copyOf(kernel)]) {
      const revoked = copy.revoke({ target: { parent } }, NOW)
      expect(revoked).toMatchObject({ leases: 1, more: true })
      expect(copy.reader.read({ lease: older })).toMatchObject({ lease: undefined })
      expect(copy.reader.read({ lease: younger })).toMatchObject({ lease: { id: younger } })
    }
  })

  it('has rows that no lease was ever in', () => {
    const { kernel, records, grant } = begin()
    const [one, two] = [grant(), grant()]
    const late = records.told.filter(({ slot }) => slot === 1)
    const copy = rebuild(late, 0, 2)
    expect(copy.leases).toBe(1)
    expect(copy.reader.read({ lease: two })).toMatchObject({ lease: { id: two } })
    expect(copy.reader.read({ lease: one })).toMatchObject({ lease: undefined })
    expect(kernel.leases).toBe(2)
  })

  it('is refused a story that cannot be', () => {
    const { records, grant } = begin()
    grant()
    const { told } = records
    const lease = { reason: 'released' } as const
    expect(() => rebuild([told[0]!, told[0]!])).toThrow('slot 0 has a lease already')
    const journal = rebuild([told[0]!]).replay()
    expect(() => journal.ended(2, 1, NOW, lease)).toThrow('slot 1 has no lease')
    expect(() => journal.capped(2, 7, NOW, NOW, lease)).toThrow('slot 7 has no lease')
    expect(() => journal.released(2, 0, NOW, 'a', 1, lease)).toThrow('has no claim with token 1')
    journal.ended(2, 0, NOW, lease)
    expect(() => journal.updated(3, 0, NOW, 'a', 1, 'v')).toThrow('slot 0 has no lease')
  })

  it('starts its events where it is told, and not before the revision that it has', () => {
    const kernel = new Kernel({ revision: 10 })
    kernel.startEvents(5)
    expect(kernel.events.completeAfter).toBe(10)
    kernel.startEvents(15)
    expect(kernel.events.completeAfter).toBe(15)
  })

  it('gives every lease its full ttl when it settles, also where nothing was replayed', () => {
    const kernel = new Kernel()
    const { lease } = kernel.grant({ holder: 'a', ttl: 100, maxLife: 500 }, NOW) as Granted
    kernel.settle(NOW + 50, NOW)
    expect(kernel.reader.read({ lease })).toMatchObject({
      lease: { until: NOW + 150, endOfLife: NOW + 550 },
    })
  })

  it('goes on above a revision that it is raised to, and never below its own', () => {
    const kernel = new Kernel()
    kernel.raise(5)
    expect(kernel.revision).toBe(5)
    kernel.raise(3)
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
  it('says whether more is due than it looked at', () => {
    const { kernel, grant } = begin()
    for (let count = 0; count < 3; count++) grant()
    expect(kernel.expire(NOW + 999, 5)).toBe(false)
    expect(kernel.expire(NOW + 1000, 2)).toBe(true)
    expect(kernel.expire(NOW + 1000, 1)).toBe(false)
    expect(kernel.leases).toBe(0)
  })

  it('tells the journal no answer to a call that had no request id, and remembers none', () => {
    const { kernel, records, grant } = begin()
    grant()
    const refusal = { code: 'storage-full', message: 'full' } as const
    kernel.grant(request, NOW, refusal)
    for (const _ of kernel.describeMemory(records));
    expect(records.told.map(({ kind }) => kind)).toEqual(['granted', 'claimed'])
    kernel.grant({ ...request, request: 'r' }, NOW)
    expect(records.told.filter(({ kind }) => kind === 'answered')).toHaveLength(1)
  })

  it('ends an overdue lease at the head of a key before somebody else claims it', () => {
    const { kernel, grant } = begin()
    const lease = grant()
    const other = { ...request, claims: [{ key: 'a' }], ifFree: true }
    expect(kernel.grant(other, NOW + 999)).toMatchObject({ outcome: 'busy' })
    expect(kernel.grant(other, NOW + 1000)).toMatchObject({ outcome: 'granted', holds: true })
    expect(kernel.endOf(lease)).toEqual({ reason: 'expired' })
    expect(kernel.endOf(`x.${lease.split('.')[1]}`)).toBeUndefined()
  })

  it('breaks a lease once, and no later than it was to end before', () => {
    const { kernel, grant } = begin()
    const lease = grant()
    const cap = (after: number) => kernel.revoke({ target: { lease }, after }, NOW)
    expect([cap(500), cap(500), cap(600)]).toMatchObject([
      { leases: 1, revision: 2 },
      { leases: 0, revision: 2 },
      { leases: 0, revision: 2 },
    ])
  })

  it('caps no renewal of a lease that never ends', () => {
    const kernel = new Kernel()
    const { lease } = kernel.grant({ holder: 'a', ttl: Infinity }, NOW) as Granted
    expect(kernel.renew([lease], NOW)).toEqual({ lost: [], capped: [] })
  })
})
