import { type Figure, type Peer, spending } from '../contest.js'
import type { Held, Locker } from '../lockers/index.js'

export const WAITERS = 32
const HOLD_MS = 1
/** Between two who come, so that it is known who came first. */
const BETWEEN_MS = 12

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** One key, which is held, and those who wait for it. */
export class Line {
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
  static async form([holder, ...waiters]: readonly Locker[], key: string): Promise<Line> {
    const first = await holder!.lock(key)
    const order: number[] = []
    const all: Promise<void>[] = []
    for (const [number, waiter] of waiters.entries()) {
      all.push(wait(waiter, key, () => order.push(number)))
      await rest(BETWEEN_MS)
    }
    await rest(20)
    return new Line(first, all, order)
  }

  /** Lets go, and waits until everyone has held it: how many milliseconds that took. */
  async drain(): Promise<number> {
    const start = performance.now()
    await this.#first.release()
    await Promise.all(this.#all)
    return performance.now() - start
  }

  /** In how many of a hundred hand-overs it went to one who came before the one that had it. */
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

/** Those who wait in a line of their own in each run; `lineFigures` are what a run gives. */
export function inLine(name: string, lockers: readonly Locker[], pids: readonly number[]): Peer {
  const run = async () => {
    const line = await Line.form(lockers, `contended/${++keys}`)
    const spent = spending(pids)
    const took = await line.drain()
    return { values: [(WAITERS / took) * 1000, line.inversions()], cpu: spent(WAITERS) }
  }
  return { name, run }
}

export function lineFigures(what: string): readonly Figure[] {
  return [
    { name: `hand-overs, ${what}`, unit: 'hand-overs/s', better: 'more' },
    { name: `out of order, ${what}`, unit: '%', better: 'less' },
  ]
}

/** So many of one kind, each with a connection of its own. */
export function many(open: () => Promise<Locker>, count = WAITERS + 1): Promise<Locker[]> {
  return Promise.all(Array.from({ length: count }, open))
}
