import type { Leasehold } from 'leasehold'
import type { SimNode } from 'leasehold/testing'
import type { RecipeActor, RecipeHarness } from './harness.js'
import type { MakeScenario, RecipeScenario } from './scenario.js'

const AGENTS = ['ann', 'ben', 'cat']
const SERVICE = 'embedder'
/**
 * In the healed system, consumers must see the truth after this time: the longest ttl, and the
 * longest time for which a cache keeps instances that lapsed together.
 */
const SETTLED_MS = 12_000

/**
 * Agents register, deregister and die; a consumer watches. An id never has two live registrations
 * at once, and in the healed system the consumer sees exactly the registered agents.
 */
export const registry: MakeScenario = (harness) => new RegistryScenario(harness)

class RegistryScenario implements RecipeScenario {
  readonly #harness: RecipeHarness
  readonly #registered = new Map<string, { readonly held: () => boolean; readonly node: SimNode }>()
  #seen: (() => readonly string[]) | undefined
  #healedAt = Infinity

  constructor(harness: RecipeHarness) {
    this.#harness = harness
    for (const name of AGENTS) harness.add(this.#agent(name))
    harness.add(this.#consumer('eve'))
  }

  check(): void {}

  healed(): void {
    this.#healedAt = this.#harness.world.now
  }

  finish(): void {
    const harness = this.#harness
    if (harness.world.now - this.#healedAt < SETTLED_MS) return
    const there = [...this.#registered]
      .filter(([, { held, node }]) => node.running && held())
      .map(([id]) => id)
      .sort()
    const seen = [...(this.#seen?.() ?? [])].sort()
    if (there.length !== AGENTS.length) {
      harness.violated('all come back', `only ${there.join(', ') || 'nobody'} is registered`)
    }
    if (there.join() !== seen.join()) {
      harness.violated(
        'discovery converges',
        `there: ${there.join(', ')}; seen: ${seen.join(', ')}`,
      )
    }
  }

  #agent(name: string): RecipeActor {
    const node = this.#harness.machine(name)
    const start = (leasehold: Leasehold): void => {
      this.#registered.delete(name)
      this.#serve(leasehold, node).catch((error) => this.#harness.world.fail(error))
    }
    return { node, start }
  }

  async #serve(leasehold: Leasehold, node: SimNode): Promise<void> {
    const harness = this.#harness
    const { random } = node
    for (;;) {
      const options = {
        id: node.name,
        address: `http://${node.name}:80`,
        ttl: random.pick([800, 2000] as const),
      }
      const registration = await leasehold.registry
        .register(SERVICE, options)
        .catch(() => undefined)
      if (registration === undefined) {
        await harness.rest(node, random.between(50, 500))
        continue
      }
      harness.operations++
      harness.note(node.name, 'is registered')
      this.#registered.set(node.name, { held: () => registration.state === 'present', node })
      const end = harness.world.now + random.between(500, 6000)
      while (registration.state !== 'ended') {
        if (!harness.healed && harness.world.now > end) break
        await harness.rest(node, random.between(50, 400))
      }
      this.#registered.delete(node.name)
      await registration.release().catch(() => undefined)
    }
  }

  #consumer(name: string): RecipeActor {
    const node = this.#harness.machine(name)
    const start = (leasehold: Leasehold): void => {
      const discovery = leasehold.registry.watch(SERVICE)
      this.#seen = () => discovery.instances.map(({ id }) => id)
    }
    return { node, start }
  }
}
