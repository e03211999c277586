import type { ElectionOptions, Leasehold, Term } from 'leasehold'
import type { SimNode } from 'leasehold/testing'
import type { RecipeActor, RecipeHarness } from './harness.js'
import type { MakeScenario, RecipeScenario } from './scenario.js'

const CANDIDATES = ['ann', 'ben', 'cat', 'dan']
/**
 * The maximum time without a leader in a healed election: a dead leader's ttl and grace, and time
 * to end a term and for all to reconnect.
 */
const CALM_MS = 8000

/** A term that a candidate was notified of. */
interface Notified {
  readonly candidate: string
  readonly term: Term
  readonly node: SimNode
  readonly incarnation: number
}

/**
 * Candidates of different priorities lead, resign, hand over and die. No two believe at once that
 * they lead, the numbers of terms rise, and in the healed system one leads permanently.
 */
export const election: MakeScenario = (harness) => new ElectionScenario(harness)

class ElectionScenario implements RecipeScenario {
  readonly #harness: RecipeHarness
  #notified: Notified[] = []
  #highest = 0
  #calmAt = Infinity
  #ledAt = -Infinity

  constructor(harness: RecipeHarness) {
    this.#harness = harness
    const { random } = harness.world
    const names = CANDIDATES.slice(0, random.integer(2, 4))
    const ttl = random.pick([600, 1500, 2500])
    const wishes = random.chance(0.5)
    for (const name of names) {
      const options: ElectionOptions = {
        ttl,
        grace: random.pick([0, 0, 300]),
        priority: wishes ? random.integer(0, 2) : 0,
        preempt: wishes && random.chance(0.3),
        drain: 500,
      }
      harness.add(this.#candidate(harness.machine(name), options, names))
    }
  }

  check(): void {
    const { world } = this.#harness
    const leading = this.#believing()
    if (leading.length > 0) this.#ledAt = world.now
    if (leading.length > 1) {
      const who = leading.map(({ candidate, term }) => `${candidate} (term ${term.number})`)
      this.#harness.violated('one leader', `${who.join(' and ')} lead at once`)
    }
    if (world.now > this.#calmAt && world.now - this.#ledAt > CALM_MS / 2) {
      this.#harness.violated('somebody leads', 'nobody has led for too long in a healed world')
      this.#calmAt = Infinity
    }
  }

  healed(): void {
    this.#calmAt = this.#harness.world.now + CALM_MS
  }

  finish(): void {
    const leading = this.#believing()
    if (leading.length !== 1) {
      this.#harness.violated('somebody leads', `${leading.length} lead at the end`)
    }
  }

  #believing(): Notified[] {
    this.#notified = this.#notified.filter(
      ({ node, incarnation }) => node.incarnation === incarnation,
    )
    return this.#notified.filter(({ node, term }) => node.running && !node.paused && term.leading)
  }

  #candidate(node: SimNode, options: ElectionOptions, names: readonly string[]): RecipeActor {
    const start = (leasehold: Leasehold): void => {
      this.#campaign(leasehold, node, options, names).catch((error) => {
        this.#harness.world.fail(error)
      })
    }
    return { node, start }
  }

  async #campaign(
    leasehold: Leasehold,
    node: SimNode,
    options: ElectionOptions,
    names: readonly string[],
  ): Promise<void> {
    for await (const term of leasehold.election('scheduler', options).lead()) {
      this.#leads(node, term)
      await this.#govern(node, term, names)
    }
  }

  #leads(node: SimNode, term: Term): void {
    const harness = this.#harness
    // A term may end before its leader looks at it; then nobody ever believed in it.
    if (!term.leading) return
    harness.note(node.name, 'leads', () => `term ${term.number}`)
    harness.operations++
    if (term.number <= this.#highest) {
      harness.violated('terms rise', `term ${term.number} came after term ${this.#highest}`)
    }
    this.#highest = Math.max(this.#highest, term.number)
    this.#notified.push({ candidate: node.name, term, node, incarnation: node.incarnation })
    this.check()
  }

  /** Leads for a while unless asked to stop; then resigns or hands over. */
  async #govern(node: SimNode, term: Term, names: readonly string[]): Promise<void> {
    const { random } = node
    const harness = this.#harness
    const end = harness.world.now + random.between(100, 6000)
    while (term.leading && !term.asked.aborted) {
      if (!harness.healed && harness.world.now > end) break
      await harness.rest(node, random.between(20, 400))
    }
    if (!term.leading || term.asked.aborted || !random.chance(0.4)) return
    const outcome = await term
      .handOver(random.pick(names), { timeout: 2000 })
      .catch(() => undefined)
    harness.note(node.name, 'hands over', () => outcome?.outcome ?? 'in vain')
  }
}
