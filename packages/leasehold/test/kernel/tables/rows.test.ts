import { describe, expect, it } from 'vitest'
import {
  IntegerRows,
  NONE,
  NumberRows,
  ReferenceField,
  Slots,
} from '../../../src/kernel/tables/rows.ts'

/** More rows than fit in two pages. */
const ROWS = 2500

function table() {
  const numbers = new NumberRows(2)
  const integers = new IntegerRows(3)
  const fields = {
    numbers: [numbers.field(), numbers.field()],
    integers: [integers.field(), integers.field(), integers.field()],
  }
  const names = new ReferenceField<string>()
  return { ...fields, names, slots: new Slots([numbers, integers, names]) }
}

describe('the rows of a table', () => {
  it('keep every field of every row while the table grows', () => {
    const { numbers, integers, names, slots } = table()
    for (let row = 0; row < ROWS; row++) {
      expect(slots.take()).toBe(row)
      for (const [at, field] of numbers.entries()) field.set(row, row + at / 4)
      for (const [at, field] of integers.entries()) field.set(row, 3 * row + at)
      expect(names.get(row)).toBeUndefined()
      names.set(row, `row ${row}`)
    }
    for (let row = 0; row < ROWS; row++) {
      expect(numbers.map((field) => field.get(row))).toEqual([row, row + 1 / 4])
      expect(integers.map((field) => field.get(row))).toEqual([3 * row, 3 * row + 1, 3 * row + 2])
      expect(names.get(row)).toBe(`row ${row}`)
    }
  })

  it('are as many as are taken, over many pages', () => {
    const { numbers, integers, names, slots } = table()
    for (let row = 0; row < 10_000; row++) slots.take()
    const some = [0, 1023, 3072, 4095, 6144, 8191, 9999]
    for (const row of some) {
      for (const field of [...numbers, ...integers]) field.set(row, row)
      names.set(row, `row ${row}`)
    }
    for (const row of some) {
      const values = [...numbers, ...integers].map((field) => field.get(row))
      expect([...values, names.get(row)]).toEqual([row, row, row, row, row, `row ${row}`])
    }
  })

  it('count up and down, on every page', () => {
    const { integers, slots } = table()
    slots.growTo(ROWS)
    for (const row of [0, 1, 31, 32, 1023, 1024, 2047, 2048, ROWS]) {
      const field = integers[1]!
      field.set(row, 5)
      expect([field.add(row, 2), field.get(row), field.add(row, -7)]).toEqual([7, 7, 0])
      expect([integers[0]!.get(row), field.get(row), integers[2]!.get(row)]).toEqual([0, 0, 0])
    }
  })
})

describe('slots', () => {
  it('are taken lowest first, again and again', () => {
    const { slots } = table()
    for (let slot = 0; slot < ROWS; slot++) slots.take()
    const free = new Set<number>()
    // A fixed walk through all slots: 7 has no factor in common with their number.
    for (let step = 0; step < 3 * ROWS; step++) {
      const slot = (7 * step) % ROWS
      if (!free.has(slot)) {
        slots.free(slot)
        free.add(slot)
      }
      if (step % 3 !== 0) continue
      const lowest = Math.min(...free)
      expect(slots.take()).toBe(lowest)
      free.delete(lowest)
    }
    for (const lowest of [...free].sort((one, other) => one - other)) {
      expect(slots.take()).toBe(lowest)
    }
    expect(slots.end).toBe(ROWS)
    expect(slots.take()).toBe(ROWS)
    expect(slots.end).toBe(ROWS + 1)
  })

  it('are all below the end, which only increases', () => {
    const { slots, numbers } = table()
    expect(slots.end).toBe(0)
    slots.growTo(40)
    expect(slots.end).toBe(41)
    slots.growTo(3)
    expect(slots.end).toBe(41)
    expect(numbers[0]!.get(40)).toBe(0)
    expect(slots.take()).toBe(41)
  })

  it('are counted again, whatever was free before', () => {
    const { slots } = table()
    slots.growTo(2100)
    for (const slot of [0, 1, 2]) slots.free(slot)
    slots.recount((slot) => slot === 5 || slot === 1050 || slot === 2100)
    expect([slots.take(), slots.take(), slots.take(), slots.take()]).toEqual([5, 1050, 2100, 2101])
    expect(NONE).toBe(-1)
  })
})
