import type { Clock } from 'leasehold/port'
import type { Principal } from '../access/index.ts'

/** The milliseconds per tick of the event loop for all connections of one principal. */
const OWN_MS = 10
/** The milliseconds per tick for all connections together. */
const TICK_MS = 30

/**
 * Shares the event loop fairly between connections. A connection with work asks for a turn and gets it
 * at once if its principal has time left in this tick. Otherwise it queues. Principals take turns, and
 * so do the connections of each, so that many connections give no advantage. Timers and other events
 * run between ticks.
 */
export class FairScheduler {
  readonly #clock: Clock
  /** The first principal has the next turn. */
  readonly #queues = new Map<Principal, (() => void)[]>()
  /** Milliseconds used in this tick, by all and by each principal. */
  #used = 0
  #number = 0
  readonly #usedBy = new Map<Principal, number>()
  #ticking = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The number of this tick. */
  tick(): number {
    this.#tickSoon()
    return this.#number
  }

  /** Runs `turn` now or later. `turn` must not throw. */
  ask(principal: Principal, turn: () => void): void {
    const own = this.#usedBy.get(principal) ?? 0
    if (this.#queues.has(principal) || own >= OWN_MS || this.#used >= TICK_MS) {
      this.queue(principal, turn)
    } else {
      this.#tickSoon()
      this.#run(principal, turn)
    }
  }

  /** Runs `turn` in a later tick. */
  queue(principal: Principal, turn: () => void): void {
    const queue = this.#queues.get(principal)
    if (queue === undefined) this.#queues.set(principal, [turn])
    else queue.push(turn)
    this.#tickSoon()
  }

  #run(principal: Principal, turn: () => void): void {
    const begun = this.#clock.now()
    turn()
    const took = this.#clock.now() - begun
    this.#used += took
    this.#usedBy.set(principal, (this.#usedBy.get(principal) ?? 0) + took)
  }

  #tickSoon(): void {
    if (this.#ticking) return
    this.#ticking = true
    this.#clock.defer(() => this.#tick())
  }

  #tick(): void {
    this.#ticking = false
    this.#number++
    this.#used = 0
    this.#usedBy.clear()
    // Turns that are queued during this tick wait for the next one.
    let left = 0
    for (const queue of this.#queues.values()) left += queue.length
    while (left-- > 0 && this.#used < OWN_MS) {
      const [principal, queue] = this.#queues.entries().next().value!
      this.#queues.delete(principal)
      const turn = queue.shift()!
      if (queue.length > 0) this.#queues.set(principal, queue)
      this.#run(principal, turn)
    }
    if (this.#queues.size > 0) this.#tickSoon()
  }
}
