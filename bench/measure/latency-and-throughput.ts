import type { Locker } from '../lockers/index.js'
import { percentile } from './rows.js'

/** Does something once. `number` counts the calls before this one. */
export type Operation = (number: number) => Promise<unknown>

/** The figure, and the number of operations done. */
export interface Measured {
  readonly value: number
  readonly count: number
}

/** Runs one operation after the other for `ms`. The figure is the median latency in microseconds. */
export async function medianLatency(operation: Operation, ms: number): Promise<Measured> {
  const times: number[] = []
  const end = performance.now() + ms
  for (let now = performance.now(); now < end; ) {
    await operation(times.length)
    const done = performance.now()
    times.push((done - now) * 1000)
    now = done
  }
  return { value: percentile(times, 0.5), count: times.length }
}

/** Runs `width` operations at a time for `ms`. The figure is the number per second. */
export async function throughput(
  operation: (worker: number) => Operation,
  width: number,
  ms: number,
): Promise<Measured> {
  const start = performance.now()
  let count = 0
  const work = async (once: Operation) => {
    for (let number = 0; performance.now() < start + ms; number++) {
      await once(number)
      count++
    }
  }
  await Promise.all(Array.from({ length: width }, (_, worker) => work(operation(worker))))
  return { value: (count / (performance.now() - start)) * 1000, count }
}

/** Locks and unlocks a key that nobody else uses. Each worker has ten keys of its own. */
export function pairOf({ lock }: Locker): (worker: number) => Operation {
  return (worker) => async (number) => {
    const held = await lock(`jobs/${worker}/${number % 10}`)
    await held.release()
  }
}
