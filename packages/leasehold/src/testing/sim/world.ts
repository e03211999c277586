import type { Timer } from '../../port/index.ts'
import { SeededRandom } from './seeded-random.ts'
import { SimNode, type SimNodeOptions } from './sim-node.ts'

/** Read when this file is loaded, so that a test runner's fake timers do not replace them. */
const nextTick = process.nextTick
const realSetImmediate = setImmediate

/** What runs after this is a microtask; `queueMicrotask` does more and takes longer. */
const SETTLED = Promise.resolve()

/** After this many events the real event loop gets a turn, or nothing else could run. */
const EVENTS_PER_TURN = 20_000

/** Events of all worlds since that turn: a world may be too short to have that many. */
let eventsSinceTurn = 0

/** With more events than this at one instant, time would never go on. */
const EVENTS_PER_INSTANT = 20_000

/** The start of true time; any positive number would do. */
const BEGINNING = 1_000_000

/**
 * A world with its own time, in which real code runs: its nodes have clocks that drift, its network
 * loses and delays messages, its disks tear writes. Everything is drawn from one seed, and the same
 * seed gives the same history, to the last event.
 *
 * Time here is true time, which nothing in the world can read: nodes read their own clocks.
 */
export class World {
  readonly seed: number
  readonly random: SeededRandom
  readonly nodes: SimNode[] = []
  /** The later events, and those of this instant, oldest first. */
  readonly #later = new Later()
  #soon: Scheduled[] = []
  #soonAt = 0
  #now = BEGINNING
  #order = 0
  #hash = 0x811c9dc5
  #lines: string[] | undefined
  #failure: { readonly error: unknown } | undefined

  constructor(seed: number, options: { readonly trace?: boolean } = {}) {
    this.seed = seed
    this.random = new SeededRandom(seed)
    this.#lines = options.trace ? [] : undefined
  }

  /** True time, in milliseconds. */
  get now(): number {
    return this.#now
  }

  /** True time since the world began. */
  get elapsed(): number {
    return this.#now - BEGINNING
  }

  /** A hash that two runs share only if they had the same history. */
  get hash(): number {
    return this.#hash >>> 0
  }

  /** The trace, one line per event, if it was requested. */
  get trace(): readonly string[] {
    return this.#lines ?? []
  }

  node(name: string, options: SimNodeOptions = {}): SimNode {
    const node = new SimNode(this, name, options)
    this.nodes.push(node)
    return node
  }

  /** Calls `run` at this true time, or now if that has passed. */
  at(time: number, run: () => void): Timer {
    const scheduled = new Scheduled(time, this.#order++, run)
    if (time > this.#now) this.#later.push(scheduled)
    else this.#soon.push(scheduled)
    return scheduled
  }

  after(delay: number, run: () => void): Timer {
    return this.at(this.#now + delay, run)
  }

  /**
   * Records that something happened. It goes into the hash, and into the trace if there is one. The
   * string is only built if it is needed.
   */
  note(who: string, what: string, detail?: () => string): void {
    this.#mix(this.#now * 1000)
    for (let at = 0; at < what.length; at++) this.#mix(what.charCodeAt(at))
    if (!this.#lines) return
    const time = `${(this.elapsed / 1000).toFixed(4).padStart(9)} s`
    this.#lines.push(`${time}  ${who.padEnd(8)} ${what}${detail ? `  ${detail()}` : ''}`)
  }

  /** The world ends with this error. For failed checks, and for code that should not have failed. */
  fail(error: unknown): void {
    this.#failure ??= { error }
  }

  /** Lets true time pass until `time`, or until nothing is left to happen. */
  run(until: number): Promise<void> {
    return new Promise((resolve, reject) => {
      let ofInstant = 0
      const step = (): void => {
        const before = this.#now
        const next = this.#failure ? undefined : this.#next(until)
        if (this.#failure) {
          reject(this.#failure.error)
          return
        }
        if (!next) {
          this.#now = Math.max(this.#now, until)
          resolve()
          return
        }
        ofInstant = this.#now === before ? ofInstant + 1 : 0
        if (ofInstant > EVENTS_PER_INSTANT) this.fail(this.#standsStill(next))
        try {
          next.run()
        } catch (error) {
          this.fail(error)
        }
        if (++eventsSinceTurn < EVENTS_PER_TURN) void SETTLED.then(settled)
        else {
          eventsSinceTurn = 0
          realSetImmediate(step)
        }
      }
      // A tick that a microtask requests comes after all microtasks, including those that others
      // create: every promise has settled before the next event.
      const settled = (): void => nextTick(step)
      void SETTLED.then(settled)
    })
  }

  /** Takes the next event that is not cancelled, and moves time to it. */
  #next(until: number): Scheduled | undefined {
    for (;;) {
      const soon = this.#soon[this.#soonAt]
      const later = this.#later.first
      // Events planned for this instant earlier come before those requested in it.
      const next = soon && !(later && later.time <= this.#now) ? soon : later
      if (!next || (next !== soon && next.time > until)) return undefined
      if (next === soon) {
        if (++this.#soonAt === this.#soon.length) {
          this.#soon = []
          this.#soonAt = 0
        }
      } else {
        this.#later.pop()
        if (!next.cancelled) this.#now = next.time
      }
      if (!next.cancelled) return next
    }
  }

  #standsStill({ run }: Scheduled): Error {
    return new Error(
      `time stands still ${this.elapsed.toFixed(4)} ms after the beginning of seed ${this.seed}: more than ${EVENTS_PER_INSTANT} events at one instant, and the next is ${run.name || run.toString().slice(0, 200)}`,
    )
  }

  #mix(value: number): void {
    this.#hash = Math.imul(this.#hash ^ (value | 0), 0x01000193)
  }
}

class Scheduled implements Timer {
  readonly time: number
  readonly order: number
  readonly run: () => void
  cancelled = false

  constructor(time: number, order: number, run: () => void) {
    this.time = time
    this.order = order
    this.run = run
  }

  cancel(): void {
    this.cancelled = true
  }
}

function before(a: Scheduled, b: Scheduled): boolean {
  return a.time < b.time || (a.time === b.time && a.order < b.order)
}

/** A heap of the later events, earliest first. */
class Later {
  readonly #heap: Scheduled[] = []

  get first(): Scheduled | undefined {
    return this.#heap[0]
  }

  push(entry: Scheduled): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(entry)
    while (at > 0) {
      const above = (at - 1) >>> 1
      if (before(heap[above]!, entry)) break
      heap[at] = heap[above]!
      at = above
    }
    heap[at] = entry
  }

  pop(): void {
    const heap = this.#heap
    const entry = heap.pop()!
    const size = heap.length
    if (size === 0) return
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= size) break
      if (below + 1 < size && before(heap[below + 1]!, heap[below]!)) below++
      if (!before(heap[below]!, entry)) break
      heap[at] = heap[below]!
      at = below
    }
    heap[at] = entry
  }
}
