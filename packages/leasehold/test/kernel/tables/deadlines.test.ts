import { describe, expect, it } from 'vitest'
import { Deadlines } from '../../../src/kernel/tables/deadlines.ts'
import { LazyDeadlines } from '../../../src/kernel/tables/lazy-deadlines.ts'

describe('deadlines', () => {
  it('come up in the order of their times, each with its slot', () => {
    const deadlines = new Deadlines()
    const left: number[] = []
    for (let step = 0; step < 600; step++) {
      const slot = (step * 389) % 601
      deadlines.push(1000 + slot, slot)
      left.push(slot)
      expect(deadlines.size).toBe(left.length)
      if (step % 4 !== 3) continue
      left.sort((one, other) => other - one)
      const earliest = left.pop()!
      expect([deadlines.next, deadlines.nextSlot]).toEqual([1000 + earliest, earliest])
      deadlines.pop()
    }
    for (const slot of left.sort((one, other) => one - other)) {
      expect([deadlines.next, deadlines.nextSlot]).toEqual([1000 + slot, slot])
      deadlines.pop()
    }
    expect([deadlines.next, deadlines.size]).toEqual([Infinity, 0])
  })

  it('at the same time all come up, one after the other', () => {
    const deadlines = new Deadlines()
    for (let slot = 0; slot < 20; slot++) deadlines.push(slot % 2, slot)
    const times: number[] = []
    const slots = new Set<number>()
    for (; deadlines.size > 0; deadlines.pop()) {
      times.push(deadlines.next)
      slots.add(deadlines.nextSlot)
    }
    expect(times).toEqual([...Array(10).fill(0), ...Array(10).fill(1)])
    expect(slots.size).toBe(20)
  })

  it('are empty after they were cleared', () => {
    const deadlines = new Deadlines()
    deadlines.push(5, 1)
    deadlines.clear()
    expect([deadlines.next, deadlines.size]).toEqual([Infinity, 0])
    deadlines.push(7, 2)
    expect([deadlines.next, deadlines.nextSlot, deadlines.size]).toEqual([7, 2, 1])
  })
})

describe('lazy deadlines', () => {
  it('come up in order after a pause, also those that were moved to a later time', () => {
    const times = [10, 20]
    const checks: number[] = [0, 0]
    const deadlines = new LazyDeadlines({
      checkAt: { get: (slot) => checks[slot]!, set: (slot, time) => (checks[slot] = time) },
      deadline: (slot) => times[slot]!,
      count: 2,
      end: 2,
    })
    deadlines.schedule(0)
    deadlines.schedule(1)
    times[0] = 30
    const due: number[] = []
    for (;;) {
      const slot = deadlines.nextDue(40)
      if (slot === undefined) break
      if (slot >= 0) due.push(slot)
    }
    expect(due).toEqual([1, 0])
  })
})
