import { describe, expect, it } from 'vitest'
import { applyPatch } from '../../../src/gateways/kubernetes/patches/index.ts'

const json = (target: unknown, operations: unknown) =>
  applyPatch('application/json-patch+json', target, operations)
const strategic = (target: unknown, patch: unknown) =>
  applyPatch('application/strategic-merge-patch+json', target, patch)
const many = (count: number, name: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`${name}${at}`, 'x']))
const path = '/metadata/annotations'

/** The median processor time of some runs: other load on the machine does not count. */
function costOf(run: () => void): number {
  const costs = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(before)
    return user + system
  })
  return costs.sort((a, b) => a - b)[2]!
}

describe('the cost of a patch', () => {
  it('does not grow with the size of the object for each operation', () => {
    const cost = (size: number) => {
      const operations = Array.from({ length: 900 }, (_, at) => ({
        ...{ op: 'replace', path: `${path}/a${at % 20}`, value: 'y' },
      }))
      const target = { metadata: { annotations: many(size, 'a') } }
      return costOf(() => void json(target, operations))
    }
    cost(20)
    // A copy of the object for each operation took 100 times as long.
    expect(cost(2000) / cost(20)).toBeLessThan(20)
  })

  it('does not grow with the product of what is there and what is retained', () => {
    const target = many(10_000, 'a')
    const cost = (count: number) => {
      const $retainKeys = Object.keys(many(count, 'b'))
      return costOf(() => void strategic(target, { $retainKeys }))
    }
    cost(200)
    expect(cost(10_000) / cost(200)).toBeLessThan(10)
  })
})

describe('a JSON patch', () => {
  it('cannot fill the memory by copying what it copied', () => {
    const operations = [{ op: 'add', path: '/spec/a', value: { x: 'x' } }]
    const copy = (from: string, to: string) => ({ op: 'copy', from, path: to })
    for (let at = 0; at < 40; at++) {
      operations.push(copy('/spec/a', '/spec/b') as never)
      operations.push({ op: 'add', path: '/spec/a', value: {} as never })
      for (const side of ['l', 'r']) operations.push(copy('/spec/b', `/spec/a/${side}`) as never)
    }
    expect(() => json({ spec: {} }, operations)).toThrow(/copies more than 50000/)
  })

  it('changes neither the object nor itself, so that it can be applied again', () => {
    const target = { spec: { a: 1 }, metadata: { owners: [1, 2] } }
    const operations = [
      { op: 'add', path: '/spec/list', value: [] },
      { op: 'add', path: '/spec/list/-', value: 1 },
      { op: 'copy', from: '/spec/list', path: '/spec/copied' },
      { op: 'add', path: '/spec/list/0', value: 0 },
      { op: 'remove', path: '/metadata/owners/0' },
      { op: 'move', from: '/spec/a', path: '/spec/moved' },
    ]
    const after = { spec: { list: [0, 1], copied: [1], moved: 1 }, metadata: { owners: [2] } }
    expect(json(target, operations)).toEqual(after)
    expect(json(target, operations)).toEqual(after)
    expect(target).toEqual({ spec: { a: 1 }, metadata: { owners: [1, 2] } })
  })

  it('can neither reach a prototype nor move a value into itself', () => {
    const path = '/metadata/__proto__'
    const patched = json({ metadata: {} }, [{ op: 'add', path, value: { polluted: 1 } }])
    const { metadata } = patched as { metadata: { polluted?: number } }
    expect(metadata.polluted).toBeUndefined()
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
    const deeper = { op: 'add', path: `${path}/polluted`, value: 1 }
    expect(() => json({ metadata: {} }, [deeper])).toThrow(/does not exist/)
    const move = { op: 'move', from: '/metadata', path: '/metadata/inside' }
    expect(() => json({ metadata: {} }, [move])).toThrow(/does not exist/)
  })
})
