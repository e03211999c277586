import type { LeaseStore } from 'leasehold/port'
import type { SimNode } from 'leasehold/testing'
import type { WatchRecord } from '../history.js'
import type { Scene } from '../scene.js'

/** Watches every key, and where its line breaks goes on from where it was; on another replica, if any. */
export class Watcher {
  readonly node: SimNode
  readonly #scene: Scene
  #store: LeaseStore | undefined
  #record: WatchRecord | undefined
  #revision: number | undefined

  constructor(scene: Scene, name: string) {
    this.#scene = scene
    this.node = scene.client(name)
  }

  start(): void {
    this.#scene.connect(this.node).then(
      (store) => {
        this.#store = store
        this.#watch()
      },
      (error) => this.#scene.world.fail(error),
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
        // What happened meanwhile is not kept any more: this one ends and another begins.
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
    this.#scene.watches.push(this.#record)
  }

  #startLater(): void {
    const delay = this.node.random.between(5, 300)
    const scene = this.#scene
    scene.world.after(
      delay,
      this.node.guard(() => {
        if (scene.casting.store === 'log') {
          scene.servers.move(this.node)
          this.#store = scene.store(this.node)
        }
        this.#watch()
      }),
    )
  }
}
