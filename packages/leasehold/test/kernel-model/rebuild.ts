import type { Revision } from '../../src/port/index.ts'
import type { Pair } from './pair.ts'
import { Records, type Told } from './records.ts'

/** Rebuilds the kernel from all that its journal was told, and goes on with it. */
export function rebuildFromJournal(pair: Pair, downtime: number): void {
  const kernel = pair.newKernel()
  const journal = kernel.replay()
  kernel.startEvents(0)
  for (const told of pair.records.told) told.tell(journal)
  journal.check()
  kernel.settle(pair.now + downtime, pair.now)
  pair.replace(kernel, downtime, 0)
}

/**
 * A description of the kernel that is taken slice by slice, while the kernel goes on, as a snapshot
 * is; with what the journal was told from its beginning on, it makes the kernel again.
 */
export class Description {
  readonly #pair: Pair
  readonly #begin: number
  readonly #least: number
  readonly #slices: { readonly end: number; readonly stamp: Revision; told: Told[] }[] = []
  /** Where there is no slot at all, the stamp is that of an empty slice. */
  readonly #stampAtFirst: Revision
  #memory: Told[] = []

  constructor(pair: Pair) {
    this.#pair = pair
    this.#begin = pair.records.told.length
    this.#least = pair.kernel.slots
    this.#stampAtFirst = pair.kernel.revision
  }

  /** Whether there are slots left to describe. */
  get unfinished(): boolean {
    return this.#described < Math.max(this.#least, this.#pair.kernel.slots)
  }

  /** Describes the next `count` slots. */
  slice(count: number): void {
    const { kernel } = this.#pair
    const from = this.#described
    const end = Math.min(from + count, Math.max(this.#least, kernel.slots))
    const records = new Records()
    kernel.describe(from, end, records)
    this.#slices.push({ end, stamp: kernel.revision, told: records.told })
  }

  /** Describes what is remembered beside the leases. */
  memory(): void {
    const records = new Records()
    for (const _ of this.#pair.kernel.describeMemory(records));
    this.#memory = records.told
  }

  rebuild(downtime: number): void {
    const pair = this.#pair
    const stamp = this.#slices.at(-1)?.stamp ?? this.#stampAtFirst
    const kernel = pair.newKernel(stamp)
    const journal = kernel.replay()
    for (const { end, told } of this.#slices) {
      journal.covers(end)
      for (const each of told) each.tell(journal)
    }
    for (const each of this.#memory) each.tell(journal)
    kernel.startEvents(stamp)
    for (const told of pair.records.told.slice(this.#begin)) {
      if (told.slot === undefined || told.revision > this.#stampOf(told.slot)) told.tell(journal)
    }
    journal.check()
    kernel.settle(pair.now + downtime, pair.now)
    pair.replace(kernel, downtime, Math.max(stamp, kernel.events.completeAfter))
  }

  get #described(): number {
    return this.#slices.at(-1)?.end ?? 0
  }

  #stampOf(slot: number): Revision {
    return this.#slices.find(({ end }) => slot < end)?.stamp ?? 0
  }
}
