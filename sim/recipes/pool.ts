import type { Leasehold, Permit, TakeOptions } from 'leasehold'
import type { SimNode } from 'leasehold/testing'
import type { RecipeActor, RecipeHarness } from './harness.js'
import type { MakeScenario, RecipeScenario } from './scenario.js'

const RESOURCES = [
  { name: 'gpu-0', memory: 80 },
  { name: 'gpu-1', memory: 40 },
  { name: 'gpu-2', memory: 40, shares: 2 },
]
const TENANTS = { vision: { weight: 2 }, speech: { weight: 1 } }
const USERS = ['ann', 'ben', 'cat']
/** After this time, dead waiters have left the queue: the ttl of a queued claim. */
const DEAD_MS = 15_000
/** After that, nobody waits longer than this, because the holds are this short. */
const WAIT_MAX_MS = 9000

interface Notified {
  readonly permit: Permit
  readonly node: SimNode
  readonly incarnation: number
}

/**
 * Tenants take resources, whole or in shares, one or several, and return them or die. No two
 * believe that they hold the same resource, tokens rise on each resource, and in the healed system
 * every waiter is served.
 */
export const pool: MakeScenario = (harness) => new PoolScenario(harness)

class PoolScenario implements RecipeScenario {
  readonly #harness: RecipeHarness
  #notified: Notified[] = []
  readonly #highest = new Map<string, number>()
  readonly #waiting = new Map<string, { readonly since: number; readonly node: SimNode }>()
  #calmAt = Infinity
  #order = 0

  constructor(harness: RecipeHarness) {
    this.#harness = harness
    const { random } = harness.world
    for (const name of USERS.slice(0, random.integer(2, 3))) harness.add(this.#user(name))
  }

  check(): void {
    const { world } = this.#harness
    const holders = new Map<string, string>()
    this.#notified = this.#notified.filter(
      ({ node, incarnation, permit }) =>
        node.incarnation === incarnation && permit.state !== 'lost',
    )
    for (const { permit, node } of this.#notified) {
      if (!node.running || node.paused || !permit.held) continue
      for (const key of permit.keys) {
        const other = holders.get(key)
        if (other !== undefined) {
          this.#harness.violated('within capacity', `${key} is held by ${other} and ${node.name}`)
        }
        holders.set(key, node.name)
      }
    }
    if (world.now < this.#calmAt) return
    for (const [name, { since, node }] of this.#waiting) {
      if (!node.running || world.now - Math.max(since, this.#calmAt) < WAIT_MAX_MS) continue
      this.#harness.violated('nobody starves', `${name} has waited since ${since.toFixed(0)}`)
      this.#waiting.delete(name)
    }
  }

  healed(): void {
    this.#calmAt = this.#harness.world.now + DEAD_MS
  }

  finish(): void {}

  #user(name: string): RecipeActor {
    const node = this.#harness.machine(name)
    const start = (leasehold: Leasehold): void => {
      for (const key of [...this.#waiting.keys()])
        if (key.startsWith(name)) this.#waiting.delete(key)
      this.#use(leasehold, node).catch((error) => this.#harness.world.fail(error))
    }
    return { node, start }
  }

  async #use(leasehold: Leasehold, node: SimNode): Promise<void> {
    const { random } = node
    const gpus = leasehold.pool('gpu', { resources: RESOURCES, tenants: TENANTS })
    for (;;) {
      const name = `${node.name}/${this.#order++}`
      this.#waiting.set(name, { since: this.#harness.world.now, node })
      const permit = await gpus.take(this.#takeOptions(node)).catch(() => undefined)
      this.#waiting.delete(name)
      if (permit !== undefined) await this.#hold(node, permit)
      await this.#harness.rest(node, random.between(20, 500))
    }
  }

  #takeOptions({ random }: SimNode): TakeOptions {
    const base = {
      tenant: random.pick(Object.keys(TENANTS)),
      kind: 'job',
      ttl: random.pick([800, 2000]),
      ...(this.#harness.healed ? undefined : { wait: random.pick([500, 3000, 8000]) }),
    }
    if (random.chance(0.3)) return { ...base, count: 2 }
    if (random.chance(0.3)) return { ...base, shares: 1 }
    if (random.chance(0.3)) return { ...base, where: 'memory >= 80' }
    return base
  }

  async #hold(node: SimNode, permit: Permit): Promise<void> {
    const harness = this.#harness
    if (permit.held) {
      harness.operations++
      harness.note(node.name, 'takes', () => `${permit.resources.join(', ')} ${permit.claimToken}`)
      for (const key of permit.keys) {
        if (permit.claimToken <= (this.#highest.get(key) ?? 0)) {
          harness.violated('tokens rise', `${key} was given with token ${permit.claimToken} again`)
        }
        this.#highest.set(key, permit.claimToken)
      }
      this.#notified.push({ permit, node, incarnation: node.incarnation })
      this.check()
    }
    await harness.rest(node, node.random.between(20, harness.healed ? 300 : 1500))
    this.#notified = this.#notified.filter((known) => known.permit !== permit)
    await permit.release().catch(() => undefined)
  }
}
