import type { Revision } from '../../../src/port/index.ts'
import type { Pair } from './pair.ts'
import { type RecordedChange, Records } from './records.ts'

/** Rebuilds the kernel from all its recorded changes, and continues with it. */
export function rebuildFromChanges(pair: Pair, downtime: number): void {
  const kernel = pair.newKernel()
  const changeSink = kernel.replay()
  kernel.startEvents(0)
  for (const change of pair.records.changes) change.replay(changeSink)
  changeSink.check()
  kernel.finishReplay(pair.now + downtime, pair.now)
  pair.replace(kernel, downtime, 0)
}

/**
 * A description of the kernel that is made slice by slice while the kernel continues, like a snapshot.
 * With the changes recorded since its beginning, it rebuilds the kernel.
 */
export class Description {
  readonly #pair: Pair
  readonly #begin: number
  readonly #least: number
  readonly #slices: {
    readonly end: number
    readonly stamp: Revision
    changes: RecordedChange[]
  }[] = []
  /** If there is no slot at all, the stamp is that of an empty slice. */
  readonly #stampAtFirst: Revision
  #retained: RecordedChange[] = []

  constructor(pair: Pair) {
    this.#pair = pair
    this.#begin = pair.records.changes.length
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
    this.#slices.push({ end, stamp: kernel.revision, changes: records.changes })
  }

  /** Describes what is retained besides the leases. */
  memory(): void {
    const records = new Records()
    for (const _ of this.#pair.kernel.describeRetained(records));
    this.#retained = records.changes
  }

  rebuild(downtime: number): void {
    const pair = this.#pair
    const stamp = this.#slices.at(-1)?.stamp ?? this.#stampAtFirst
    const kernel = pair.newKernel(stamp)
    const changeSink = kernel.replay()
    for (const { end, changes } of this.#slices) {
      changeSink.covers(end)
      for (const each of changes) each.replay(changeSink)
    }
    for (const each of this.#retained) each.replay(changeSink)
    kernel.startEvents(stamp)
    for (const change of pair.records.changes.slice(this.#begin)) {
      if (change.slot === undefined || change.revision > this.#stampOf(change.slot))
        change.replay(changeSink)
    }
    changeSink.check()
    kernel.finishReplay(pair.now + downtime, pair.now)
    pair.replace(kernel, downtime, Math.max(stamp, kernel.events.completeAfter))
  }

  get #described(): number {
    return this.#slices.at(-1)?.end ?? 0
  }

  #stampOf(slot: number): Revision {
    return this.#slices.find(({ end }) => slot < end)?.stamp ?? 0
  }
}
