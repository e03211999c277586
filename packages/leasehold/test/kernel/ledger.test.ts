import { beforeEach, describe, expect, it } from 'vitest'
import { Ledger } from '../../src/kernel/ledger.ts'
import { NONE } from '../../src/kernel/tables/rows.ts'
import { DEFAULT_LIMITS } from '../../src/port/index.ts'

const NOW = 1_000_000
const BROKEN = { reason: 'broken' } as const

let ledger: Ledger

beforeEach(() => {
  ledger = new Ledger(
    { ...DEFAULT_LIMITS, history: 16 },
    { revision: 0, isTimed: true, changeSink: undefined, noticeSink: undefined },
  )
})

function add(ttl: number): number {
  return ledger.addLease(++ledger.revision, { holder: 'alice', ttl }, NONE, NOW)
}

function cap(slot: number, endOfLife: number): void {
  ledger.capLease(++ledger.revision, slot, NOW, endOfLife, BROKEN)
}

describe('the deadlines of leases', () => {
  it('have one entry per lease, and another only if it is due earlier', () => {
    add(Infinity)
    expect(ledger.deadlines.size).toBe(0)
    const slot = add(1000)
    expect(ledger.deadlines.size).toBe(1)
    cap(slot, NOW + 5000)
    cap(slot, NOW + 1000)
    expect(ledger.deadlines.size).toBe(1)
    cap(slot, NOW + 500)
    expect([ledger.deadlines.size, ledger.deadlines.next]).toEqual([2, NOW + 500])
  })

  it('have an entry for a lease without a ttl once its life is limited', () => {
    const slot = add(Infinity)
    cap(slot, NOW + 500)
    expect([ledger.nextDue(NOW + 499), ledger.nextDue(NOW + 500)]).toEqual([undefined, slot])
  })

  it('stay few, however often a lease becomes due earlier', () => {
    add(Infinity)
    const slot = add(100_000)
    let most = 0
    for (let step = 1; step < 5000; step++) {
      cap(slot, NOW + 100_000 - step)
      most = Math.max(most, ledger.deadlines.size)
    }
    // Two for each lease, and some more.
    expect(most).toBe(2 * 2 + 1024)
    const due: (number | undefined)[] = []
    while (ledger.deadlines.size > 0) due.push(ledger.nextDue(NOW + 200_000))
    expect(due.filter((each) => each !== NONE)).toEqual([slot])
  })

  it('drop the leases that have ended when there are too many entries', () => {
    const slots = Array.from({ length: 3000 }, () => add(10_000))
    ledger.endLeases(++ledger.revision, slots, NOW, BROKEN)
    const slot = add(100)
    expect(ledger.deadlines.size).toBe(1)
    expect(ledger.nextDue(NOW + 100)).toBe(slot)
  })

  it('skip a lease that has ended, and one that was renewed', () => {
    const [gone, renewed] = [add(100), add(100)]
    ledger.endLeases(++ledger.revision, [gone], NOW, BROKEN)
    ledger.tables.leases.renewedAt.set(renewed, NOW + 50)
    const looked = [1, 2, 3].map(() => ledger.nextDue(NOW + 100))
    expect(looked).toEqual([NONE, NONE, undefined])
    expect(ledger.nextDue(NOW + 150)).toBe(renewed)
  })
})
