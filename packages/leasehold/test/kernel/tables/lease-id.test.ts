import { describe, expect, it } from 'vitest'
import { bornOf, leaseId, slotOf } from '../../../src/kernel/tables/lease-id.ts'

describe('the id of a lease', () => {
  it.each([
    [0, 1],
    [9, 10],
    [17, 20_391],
    [123_456_789, Number.MAX_SAFE_INTEGER],
  ])('contains slot %i and revision %i', (slot, born) => {
    const id = leaseId(slot, born)
    expect(id).toBe(`${slot}.${born}`)
    expect([slotOf(id), bornOf(id)]).toEqual([slot, born])
  })

  it.each([
    ['', 'empty'],
    ['.1', 'no slot'],
    ['12', 'no dot'],
    ['1234567890.1', 'too long a slot'],
    ['-1.1', 'a sign'],
    ['1a.1', 'a letter'],
    ['1/.1', 'the character before 0'],
    ['1:.1', 'the character after 9'],
  ])('has no slot in %j: %s', (id) => {
    expect(slotOf(id)).toBe(-1)
  })

  it.each([
    ['1.', 'nothing after the dot'],
    ['1.01', 'a second spelling'],
    ['1.0', 'no revision is 0'],
    ['1.12345678901234567', 'too long'],
    ['1.1/', 'the character before 0'],
    ['1.1:', 'the character after 9'],
  ])('has no revision in %j: %s', (id) => {
    expect(bornOf(id)).toBe(-1)
  })
})
