import { LeaseholdError, type LeaseStore, type Watch, type WatchTarget } from 'leasehold/port'
import { writeNotice } from 'leasehold/remote'
import { asLeaseholdError } from './operations.ts'
import type { Outgoing } from './outgoing.ts'
import type { Surroundings } from './surroundings.ts'

/** The watches of one client's stream, by the ids of the requests that opened them. */
export class StreamWatches {
  readonly #around: Surroundings
  readonly #store: LeaseStore
  readonly #out: Outgoing
  readonly #watches = new Map<number, Watch>()

  constructor(around: Surroundings, store: LeaseStore, out: Outgoing) {
    this.#around = around
    this.#store = store
    this.#out = out
  }

  /** Opens a watch. What is wrong with it is its first and last notice. */
  open(id: number, target: WatchTarget): void {
    this.close(id)
    try {
      const { watches } = this.#around.options
      if (this.#watches.size >= watches) throw tooManyWatches(watches)
      const watch = this.#store.watch(target, (notice) => {
        const { type } = notice
        if (type === 'gone' || type === 'compacted' || type === 'interrupted') {
          this.#watches.delete(id)
        }
        this.#around.stats.notices++
        this.#out.push(writeNotice(id, notice))
      })
      this.#watches.set(id, watch)
    } catch (error) {
      this.#out.push(writeNotice(id, { type: 'interrupted', error: asLeaseholdError(error) }))
    }
  }

  close(id: number): void {
    this.#watches.get(id)?.close()
    this.#watches.delete(id)
  }

  closeAll(): void {
    for (const watch of this.#watches.values()) watch.close()
    this.#watches.clear()
  }
}

function tooManyWatches(most: number): LeaseholdError {
  return new LeaseholdError(
    'limit-exceeded',
    `one stream has at most ${most} watches: close some, or watch a common prefix`,
  )
}
