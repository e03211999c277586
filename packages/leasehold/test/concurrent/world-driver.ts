import type { LeaseStore } from '../../src/port/index.ts'
import { type Driver, type Rules, type SimNode, World } from '../../src/testing/index.ts'

/** A call without an answer after this virtual time will never be answered. */
const NEVER_MS = 120_000

/** Drives a store in a simulated world: the same seed and schedule give the same run. */
export abstract class WorldDriver<Fault> implements Driver<Fault> {
  readonly prefix = 'run/'
  readonly passesInCalls = true
  readonly ownDeadlines = true
  abstract readonly rules: Rules
  readonly world: World
  readonly node: SimNode
  #stores: readonly LeaseStore[] = []
  #passed = 0

  constructor(seed: number) {
    this.world = new World(seed)
    this.node = this.world.node('store')
  }

  get stores(): readonly LeaseStore[] {
    return this.#stores
  }

  use(store: LeaseStore): void {
    this.#stores = [store]
  }

  now(): number {
    return this.node.monotonic()
  }

  /** A little longer than requested, and different each time, so that no call meets a deadline. */
  async pass(ms: number): Promise<void> {
    await this.world.run(this.world.now + ms + 0.01 * ++this.#passed)
  }

  async until(done: () => boolean): Promise<void> {
    const end = this.world.now + NEVER_MS
    while (!done()) {
      if (this.world.now > end) throw new Error(`no answer after ${NEVER_MS} ms`)
      await this.pass(1)
    }
  }

  async close(): Promise<void> {
    let closed = false
    void this.#stores[0]?.close().finally(() => {
      closed = true
    })
    await this.until(() => closed)
  }
}
