import type { Held, Locker } from '../../lockers/index.js'
import { type Figure, measureCpu, type Peer } from '../../measure/compare.js'

export const WAITERS = 32
const HOLD_MS = 1
/** Between two who come, so that it is known who came first. */
const BETWEEN_MS = 12

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** One key, which is held, and those who wait for it. */
export class WaiterQueue {
  /** Who held it, in the order in which they did; each is named by when they came. */
  readonly order: number[] = []
  readonly #first: Held
  readonly #all: Promise<void>[]

  private constructor(first: Held, all: Promise<void>[], order: number[]) {
    this.#first = first
    this.#all = all
    this.order = order
  }

  /** The first of the lockers holds, the others have come to wait, one after the other. */
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

  /** Lets go, and waits until everyone has held it: how openMany milliseconds that took. */
  async drain(): Promise<number> {
    const start = performance.now()
    await this.#first.release()
    await Promise.all(this.#all)
    return performance.now() - start
  }

  /** In how openMany of a hundred hand-overs it went to one who came before the one that had it. */
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

/** Those who wait in a queue of their own in each run; `queueFigures` are what a run gives. */
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

/** So openMany of one kind, each with a connection of its own. */
export function openMany(open: () => Promise<Locker>, count = WAITERS + 1): Promise<Locker[]> {
  return Promise.all(Array.from({ length: count }, open))
}
