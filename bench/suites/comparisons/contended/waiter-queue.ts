import type { Held, Locker } from '../../../lockers/index.js'
import { type Figure, measureCpu, type Peer } from '../../../measure/compare.js'

export const WAITERS = 32
const HOLD_MS = 1
/** The time between two arrivals, so that their order is known. */
const BETWEEN_MS = 12

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** One held key, and its waiters. */
export class WaiterQueue {
  /** The holders in order, each named by its arrival number. */
  readonly order: number[] = []
  readonly #first: Held
  readonly #all: Promise<void>[]

  private constructor(first: Held, all: Promise<void>[], order: number[]) {
    this.#first = first
    this.#all = all
    this.order = order
  }

  /** The first locker holds. The others have started to wait, one after the other. */
  static async form([holder, ...waiters]: readonly Locker[], key: string): Promise<WaiterQueue> {
    const first = await holder!.lock(key)
    const order: number[] = []
    const all: Promise<void>[] = []
    for (const [number, waiter] of waiters.entries()) {
      all.push(wait(waiter, key, () => order.push(number)))
      await rest(BETWEEN_MS)
    }
    await rest(20)
    return new WaiterQueue(first, all, order)
  }

  /** Releases the key and waits until every locker has held it. Returns the milliseconds. */
  async drain(): Promise<number> {
    const start = performance.now()
    await this.#first.release()
    await Promise.all(this.#all)
    return performance.now() - start
  }

  /** How many of a hundred hand-overs went to a waiter that arrived before the previous holder. */
  inversions(): number {
    const back = this.order.filter((number, at) => at > 0 && number < this.order[at - 1]!)
    return (back.length / (this.order.length - 1)) * 100
  }
}

async function wait(waiter: Locker, key: string, held: () => void): Promise<void> {
  const lock = await waiter.lock(key)
  held()
  await rest(HOLD_MS)
  await lock.release()
}

let keys = 0

/** The waiters, in a new queue for each run; `queueFigures` are the results of a run. */
export function inQueue(name: string, lockers: readonly Locker[], pids: readonly number[]): Peer {
  const run = async () => {
    const queue = await WaiterQueue.form(lockers, `contended/${++keys}`)
    const spent = measureCpu(pids)
    const took = await queue.drain()
    return { values: [(WAITERS / took) * 1000, queue.inversions()], cpu: spent(WAITERS) }
  }
  return { name, run }
}

export function queueFigures(what: string): readonly Figure[] {
  return [
    { name: `hand-overs, ${what}`, unit: 'hand-overs/s', better: 'more' },
    { name: `out of order, ${what}`, unit: '%', better: 'less' },
  ]
}

/** Several lockers of one kind, each with its own connection. */
export function openMany(open: () => Promise<Locker>, count = WAITERS + 1): Promise<Locker[]> {
  return Promise.all(Array.from({ length: count }, open))
}
