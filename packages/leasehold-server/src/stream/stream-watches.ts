import { LeaseholdError, type LeaseStore, type Watch, type WatchTarget } from 'leasehold/port'
import { writeNotice } from 'leasehold/remote'
import { asLeaseholdError } from './operations.ts'
import type { Outbox } from './outbox.ts'
import type { StreamDependencies } from './stream-dependencies.ts'

/** The watches of one stream, by the ids of the requests that opened them. */
export class StreamWatches {
  readonly #dependencies: StreamDependencies
  readonly #store: LeaseStore
  readonly #out: Outbox
  readonly #watches = new Map<number, Watch>()

  constructor(dependencies: StreamDependencies, store: LeaseStore, out: Outbox) {
    this.#dependencies = dependencies
    this.#store = store
    this.#out = out
  }

  /** Opens a watch. An error is sent as its first and last notice. */
  open(id: number, target: WatchTarget): void {
    this.close(id)
    try {
      const { watches } = this.#dependencies.options
      if (this.#watches.size >= watches) throw tooManyWatches(watches)
      const watch = this.#store.watch(target, (notice) => {
        const { type } = notice
        if (type === 'gone' || type === 'compacted' || type === 'interrupted') {
          this.#watches.delete(id)
        }
        this.#dependencies.stats.notices++
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
    `a stream may have at most ${most} watches: close some, or watch a common prefix`,
  )
}
