import { describe, expect, it } from 'vitest'
import { NONE, ReferenceField, Slots } from '../../../src/kernel/tables/rows.ts'
import { SlotsByName } from '../../../src/kernel/tables/slots-by-name.ts'

class CountingField extends ReferenceField<string> {
  reads = 0

  override get(slot: number): string | undefined {
    this.reads++
    return super.get(slot)
  }
}

class Names {
  readonly #names = new CountingField()
  readonly #slots = new Slots([this.#names])
  readonly table = new SlotsByName(this.#names)

  /** How many names are read to find one. */
  readsFor(name: string): number {
    const before = this.#names.reads
    this.table.find(name)
    return this.#names.reads - before
  }

  add(name: string): number {
    const slot = this.#slots.take()
    this.#names.set(slot, name)
    this.table.add(slot)
    return slot
  }

  delete(slot: number): void {
    this.table.delete(slot)
    this.#names.set(slot, undefined)
    this.#slots.free(slot)
  }
}

/** 2^parts names with one hash: each part can be one of two strings that change the state alike. */
function collidingNames(parts: number): string[] {
  const pairs = Array.from({ length: parts }, (_, at) => pairAfter(at))
  let names = ['']
  for (const pair of pairs) names = names.flatMap((name) => pair.map((part) => name + part))
  return names
}

/** Two strings with the same FNV-1a state after any equal state that was reached by `at` pairs. */
const found: [string, string][] = []
function pairAfter(at: number): [string, string] {
  if (found[at]) return found[at]
  let state = 0x811c9dc5
  for (let each = 0; each < at; each++) state = fnv(state, pairAfter(each)[0])
  const seen = new Map<number, string>()
  for (let number = 0; ; number++) {
    const text = number.toString(36).padStart(5, '.')
    const reached = fnv(state, text)
    const other = seen.get(reached)
    if (other !== undefined) {
      found[at] = [other, text]
      return found[at]
    }
    seen.set(reached, text)
  }
}

function fnv(state: number, text: string): number {
  let hash = state
  for (const unit of text) hash = Math.imul(hash ^ unit.charCodeAt(0), 0x01000193)
  return hash
}

describe('the slots by name', () => {
  it('finds what was added and not deleted, like a Map', () => {
    let chance = 7
    const names = new Names()
    const model = new Map<string, number>()
    for (let step = 0; step < 60_000; step++) {
      chance = (Math.imul(chance, 1_103_515_245) + 12_345) >>> 0
      const name = `key/${(chance >>> 8) % 20_000}`
      const slot = model.get(name)
      expect(names.table.find(name)).toBe(slot ?? NONE)
      if (slot === undefined) model.set(name, names.add(name))
      else if (chance % 10 < 7) {
        names.delete(slot)
        model.delete(name)
      }
    }
    for (const [name, slot] of model) expect(names.table.find(name)).toBe(slot)
  })

  it('reads about one name to find one', () => {
    const names = new Names()
    const all = Array.from({ length: 50_000 }, (_, at) => `jobs/import-${at}`)
    for (const name of all) names.add(name)
    let reads = 0
    for (const name of all) reads += names.readsFor(name) + names.readsFor(`${name}?`)
    expect(reads).toBeLessThan(1.01 * all.length)
  })

  it('stays quick if somebody chose names that collide', () => {
    const names = new Names()
    const colliding = collidingNames(14)
    const slots = new Map(colliding.map((name) => [name, names.add(name)]))
    expect(slots.size).toBe(16_384)
    for (const [name, slot] of slots) expect(names.table.find(name)).toBe(slot)
    expect(names.readsFor(colliding.at(-1)!)).toBeLessThan(300)
    for (const name of colliding.slice(0, 5000)) names.delete(slots.get(name)!)
    expect(names.table.find(colliding[4999]!)).toBe(NONE)
    expect(names.table.find(colliding[5000]!)).toBe(slots.get(colliding[5000]!))
  })
})
