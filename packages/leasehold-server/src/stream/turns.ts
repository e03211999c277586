import type { Clock } from 'leasehold/port'
import type { Principal } from '../access/index.ts'

/** The connections of one principal get so many milliseconds of one tick of the event loop. */
const OWN_MS = 10
/** All connections together get so many. */
const TICK_MS = 30

/**
 * Shares the event loop between connections. A connection that has something to do asks for a turn,
 * and gets it at once while its principal has time left in this tick. Otherwise it queues: principals
 * take turns, and so do the connections of each, so that whoever opens many connections gets no more
 * than others. Between ticks, timers and everything else that has arrived are handled.
 */
export class Turns {
  readonly #clock: Clock
  /** The first principal is the next one to have a turn. */
  readonly #queues = new Map<Principal, (() => void)[]>()
  /** Milliseconds used in this tick: by all, and by each. */
  #used = 0
  #number = 0
  readonly #usedBy = new Map<Principal, number>()
  #ticking = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The number of this tick, to tell whether something happens in the same one. */
  tick(): number {
    this.#tickSoon()
    return this.#number
  }

  /** Runs `turn` now, or when it is its turn. `turn` must not throw. */
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
    // Those that queue again while these have their turn wait for the next tick.
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
