import type { LeaseStore } from 'leasehold/port'
import type { SimNode } from 'leasehold/testing'
import type { WatchRecord } from '../checkers/history.js'
import type { Harness } from '../world/harness.js'

/** Watches every key. If its watch breaks, it resumes, on another replica if there is one. */
export class Watcher {
  readonly node: SimNode
  readonly #harness: Harness
  #store: LeaseStore | undefined
  #record: WatchRecord | undefined
  #revision: number | undefined

  constructor(harness: Harness, name: string) {
    this.#harness = harness
    this.node = harness.client(name)
  }

  start(): void {
    this.#harness.connect(this.node).then(
      (store) => {
        this.#store = store
        this.#watch()
      },
      (error) => this.#harness.world.fail(error),
    )
  }

  #watch(): void {
    const from = this.#revision
    this.#store!.watch({ prefix: '', from }, (notice) => {
      if (notice.type === 'watching') this.#begin(notice.revision)
      else if (notice.type === 'events') {
        this.#revision = notice.revision
        this.#record!.events.push(...notice.events)
      } else if (notice.type === 'interrupted') {
        if (this.#record) this.#record.open = false
        this.#startLater()
      } else if (notice.type === 'compacted') {
        // The missed events are no longer kept: end this watch and start another.
        if (this.#record) this.#record.open = false
        this.#record = undefined
        this.#revision = undefined
        this.#startLater()
      }
    })
  }

  #begin(revision: number): void {
    if (this.#record) {
      this.#record.open = true
      return
    }
    this.#revision = revision
    this.#record = { name: this.node.name, from: revision, events: [], open: true }
    this.#harness.watches.push(this.#record)
  }

  #startLater(): void {
    const delay = this.node.random.between(5, 300)
    const harness = this.#harness
    harness.world.after(
      delay,
      this.node.guard(() => {
        if (harness.setup.store === 'log') {
          harness.servers.move(this.node)
          this.#store = harness.store(this.node)
        }
        this.#watch()
      }),
    )
  }
}
