import type { Leasehold } from 'leasehold'
import { isLeaseholdError } from 'leasehold'
import type { SimNode } from 'leasehold/testing'
import type { RecipeActor, RecipeHarness } from './harness.js'
import type { MakeScenario, RecipeScenario } from './scenario.js'

const PROCESSES = ['ann', 'ben', 'cat']
const TTL_MS = 3000

/** What is known about a session: all processes of a service share its id. */
interface Known {
  readonly id: string
  /** It was missing in a read, or its end was acknowledged. */
  gone: boolean
  /** The latest sending time of a touch that can have reached the store. */
  touchedAt: number
}

/**
 * Several processes use, touch, save and end the same sessions. An ended session stays ended for
 * every process, and a session that nobody touches ends when its time is over.
 */
export const session: MakeScenario = (harness) => new SessionScenario(harness)

class SessionScenario implements RecipeScenario {
  readonly #harness: RecipeHarness
  readonly #sessions: Known[] = []
  #leaseholds: { readonly leasehold: Leasehold; readonly node: SimNode }[] = []

  constructor(harness: RecipeHarness) {
    this.#harness = harness
    for (const name of PROCESSES) harness.add(this.#process(name))
  }

  check(): void {}

  healed(): void {
    // Nobody touches a session any more: in the end all must be gone, and known to be gone.
    this.#harness.world.after(TTL_MS * 3, () => this.#lookForRest())
  }

  finish(): void {}

  #lookForRest(): void {
    const one = this.#leaseholds.find(({ node }) => node.running && !node.paused)
    if (one === undefined) return
    for (const known of this.#sessions) {
      one.leasehold
        .sessions('users')
        .get(known.id)
        .then(
          (found) => {
            if (found !== undefined) {
              this.#harness.violated('sessions end', `a session lives untouched for too long`)
            }
          },
          () => undefined,
        )
    }
  }

  #process(name: string): RecipeActor {
    const node = this.#harness.machine(name)
    const start = (leasehold: Leasehold): void => {
      this.#leaseholds = this.#leaseholds.filter((other) => other.node !== node)
      this.#leaseholds.push({ leasehold, node })
      this.#serve(leasehold, node).catch((error) => this.#harness.world.fail(error))
    }
    return { node, start }
  }

  async #serve(leasehold: Leasehold, node: SimNode): Promise<void> {
    const harness = this.#harness
    const { random } = node
    const sessions = leasehold.sessions<{ count: number }>('users', { ttl: TTL_MS, max: 10_000 })
    while (!harness.healed) {
      await harness.rest(node, random.between(20, 600))
      try {
        if (this.#sessions.length < 3 || random.chance(0.1)) {
          const made = await sessions.create({ user: 'u', data: { count: 0 } })
          this.#sessions.push({ id: made.id, gone: false, touchedAt: harness.world.now })
          harness.operations++
          continue
        }
        await this.#use(random.pick(this.#sessions.slice(-4)), sessions, node)
      } catch (error) {
        if (!isLeaseholdError(error)) throw error
      }
    }
  }

  async #use(
    known: Known,
    sessions: ReturnType<Leasehold['sessions']>,
    node: SimNode,
  ): Promise<void> {
    const { random } = node
    const wasGone = known.gone
    const found = await sessions.get(known.id)
    if (found === undefined) {
      known.gone = true
      return
    }
    if (wasGone) this.#harness.violated('what has ended stays ended', 'a session came back')
    if (random.chance(0.1)) {
      await found.end()
      known.gone = true
    } else if (random.chance(0.5)) await found.touch()
    else await found.save({ count: 1 })
    known.touchedAt = this.#harness.world.now
  }
}
