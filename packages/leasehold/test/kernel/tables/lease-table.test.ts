import { beforeEach, describe, expect, it } from 'vitest'
import { LeaseTable } from '../../../src/kernel/tables/lease-table.ts'
import { NONE } from '../../../src/kernel/tables/rows.ts'

let leases: LeaseTable
let born: number

beforeEach(() => {
  leases = new LeaseTable()
  born = 0
})

function add(parent = NONE): number {
  const slot = leases.slots.take()
  leases.put(slot, ++born, `holder ${born}`, 100)
  if (parent !== NONE) leases.addChild(parent, slot)
  return slot
}

/** The children in both directions of the list, which must be the same. */
function childrenOf(parent: number): number[] {
  const forth: number[] = []
  let at = leases.firstChild.get(parent)
  for (; at !== NONE; at = leases.nextSibling.get(at)) forth.push(at)
  const back: number[] = []
  at = leases.lastChild.get(parent)
  for (; at !== NONE; at = leases.previousSibling.get(at)) back.unshift(at)
  expect(back).toEqual(forth)
  expect(leases.children.get(parent)).toBe(forth.length)
  return forth
}

describe('the lease table', () => {
  it('finds a lease by its id until it is removed, and not the next lease in its slot', () => {
    const [one, two] = [add(), add()]
    const [first, second] = [leases.id(one), leases.id(two)]
    for (const find of ['find', 'findAgain'] as const) {
      expect([first, second, first, first].map((id) => leases[find](id))).toEqual([
        one,
        two,
        one,
        one,
      ])
    }
    expect(leases.count).toBe(2)
    leases.remove(one)
    expect(leases.count).toBe(1)
    expect([leases.find(first), leases.findAgain(first), leases.findAgain(first)]).toEqual([
      NONE,
      NONE,
      NONE,
    ])
    expect(add()).toBe(one)
    expect([leases.find(first), leases.findAgain(first)]).toEqual([NONE, NONE])
    expect(leases.find(leases.id(one))).toBe(one)
  })

  it.each(['', 'x', '0', '0.', '0.0', '7.1', '-1.1', '2.0'])('finds no lease by %j', (id) => {
    add()
    add()
    expect(leases.find(id)).toBe(NONE)
    expect(leases.findAgain(id)).toBe(NONE)
  })

  it('finds no lease in a slot that the table has no room for', () => {
    leases.slots.growTo(1023)
    expect([leases.find('1024.1'), leases.find('999999.1')]).toEqual([NONE, NONE])
  })

  it('keeps nothing of a lease for the next one in its slot', () => {
    const slot = add()
    leases.labels.set(slot, { a: 'b' })
    leases.cappedBy.set(slot, { reason: 'broken' })
    leases.claims.set(slot, 3)
    leases.firstClaim.set(slot, 3)
    leases.lastClaim.set(slot, 3)
    add(slot)
    leases.remove(slot)
    expect(leases.holder.get(slot)).toBeUndefined()
    expect(add()).toBe(slot)
    for (const field of [leases.labels, leases.cappedBy]) expect(field.get(slot)).toBeUndefined()
    for (const field of [leases.firstClaim, leases.lastClaim, leases.parent]) {
      expect(field.get(slot)).toBe(NONE)
    }
    expect(childrenOf(slot)).toEqual([])
    expect([leases.claims.get(slot), leases.renewedAt.get(slot)]).toEqual([0, 100])
  })

  it('keeps a lease until its ttl and grace, or its life, are over', () => {
    const slot = add()
    leases.ttl.set(slot, 10)
    leases.grace.set(slot, 3)
    leases.endOfLife.set(slot, Infinity)
    expect(leases.deadline(slot)).toBe(113)
    leases.endOfLife.set(slot, 105)
    expect(leases.deadline(slot)).toBe(105)
  })
})

describe('the tree of leases', () => {
  it('keeps the order of children when any of them is removed', () => {
    const parent = add()
    const [one, two, three, four] = [add(parent), add(parent), add(parent), add(parent)]
    expect(childrenOf(parent)).toEqual([one, two, three, four])
    leases.removeFromParent(two)
    expect(childrenOf(parent)).toEqual([one, three, four])
    leases.removeFromParent(one)
    expect(childrenOf(parent)).toEqual([three, four])
    leases.removeFromParent(four)
    expect(childrenOf(parent)).toEqual([three])
    expect([one, two, three].map((slot) => leases.parent.get(slot))).toEqual([NONE, NONE, parent])
    leases.removeFromParent(one)
    leases.removeFromParent(three)
    expect(childrenOf(parent)).toEqual([])
  })

  it('sorts children by the time of their grants', () => {
    const parent = add()
    const children = [add(), add(), add()]
    for (const child of [children[2]!, children[0]!, children[1]!]) leases.addChild(parent, child)
    leases.sortChildren(parent)
    expect(childrenOf(parent)).toEqual(children)
  })

  it('knows the depth of a lease and all its descendants', () => {
    const root = add()
    const [left, right] = [add(root), add(root)]
    const low = add(left)
    expect([root, left, low].map((slot) => leases.depth(slot))).toEqual([1, 2, 3])
    expect(leases.withDescendants(root)).toEqual([root, left, right, low])
    expect(leases.withDescendants(right)).toEqual([right])
  })
})
