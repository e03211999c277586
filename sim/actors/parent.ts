import type { LeaseId, LeaseStore } from 'leasehold/port'
import type { SimNode } from 'leasehold/testing'
import type { Harness } from '../world/harness.js'

/** Creates families of leases and lets them end by revocation or expiry. */
export class Parent {
  readonly node: SimNode
  readonly #harness: Harness
  readonly #store: LeaseStore
  #families = 0
  #stopping = false

  constructor(harness: Harness, name: string) {
    this.#harness = harness
    this.node = harness.client(name)
    this.#store = harness.store(this.node)
  }

  start(): void {
    this.#later(this.node.random.between(0, 2000), () => this.#again())
  }

  stop(): void {
    this.#stopping = true
  }

  #again(): void {
    if (this.#stopping) return
    this.#raise().catch(() => undefined)
    this.#later(this.node.random.between(1500, 5000), () => this.#again())
  }

  async #raise(): Promise<void> {
    const { random } = this.node
    const family = `family/${++this.#families}`
    const root = await this.#grant(600, `${family}/root`, undefined)
    const members = new Set([root])
    for (let child = random.integer(1, 3); child > 0; child--) {
      const parent = random.pick([...members])
      // A child's own ttl does not matter: it ends with its parent at the latest.
      members.add(await this.#grant(60_000, `${family}/${child}`, parent))
    }
    this.#harness.families.push({ root, members })
    if (random.chance(0.5))
      await this.#store.revoke({ target: { lease: root }, by: this.node.name })
  }

  async #grant(ttl: number, key: string, parent: LeaseId | undefined): Promise<LeaseId> {
    const request = this.node.random.id()
    const claims = [{ key }]
    const holder = this.node.name
    const answer = await this.#store.grant({ holder, ttl, claims, parent, request })
    if (answer.outcome === 'busy') throw new Error(`${key} is new and cannot be busy`)
    return answer.lease
  }

  #later(ms: number, run: () => void): void {
    this.#harness.world.after(ms, this.node.guard(run))
  }
}
