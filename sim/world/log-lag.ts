import type { Log } from 'leasehold/log'
import type { SimLog, SimNode } from 'leasehold/testing'

/**
 * How far replicas are behind their log. A replica counts a period from when it applied the entry, so
 * one that is behind counts it later.
 */
export class LogLag {
  readonly #log: SimLog
  readonly #now: () => number
  /** When each entry was appended, by its position. */
  readonly #appended: number[] = []
  readonly #delivered: { readonly time: number; readonly age: number }[] = []

  constructor(log: SimLog, now: () => number) {
    this.#log = log
    this.#now = now
    log.onEntries(() => {
      this.#appended[log.tail()] = now()
    })
  }

  /** The log as this node sees it. */
  open(node: SimNode): Log {
    const log = this.#log.open(node)
    const follow = log.follow.bind(log)
    log.follow = (after, { entries, ended }) =>
      follow(after, {
        entries: (delivered) => {
          const time = this.#now()
          this.#delivered.push({ time, age: time - this.#appended[delivered[0]!.position]! })
          entries(delivered)
        },
        ended,
      })
    const load = log.loadSnapshot.bind(log)
    // How old is what it learns from a snapshot is not known.
    log.loadSnapshot = () =>
      load().finally(() => this.#delivered.push({ time: this.#now(), age: Infinity }))
    return log
  }

  /** The age of the oldest entry that was delivered since this time. */
  since(time: number): number {
    return this.#delivered.reduce((lag, one) => (one.time < time ? lag : Math.max(lag, one.age)), 0)
  }
}
