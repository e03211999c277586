import type { Locker } from './lockers/index.js'
import { percentile } from './rows.js'

/** Does something once; told how often it was done before. */
export type Act = (number: number) => Promise<unknown>

/** The figure, and how many of what is counted were done. */
export interface Paced {
  readonly value: number
  readonly count: number
}

/** One after the other, for so long: how many microseconds one takes, in the middle. */
export async function oneByOne(act: Act, ms: number): Promise<Paced> {
  const times: number[] = []
  const end = performance.now() + ms
  for (let now = performance.now(); now < end; ) {
    await act(times.length)
    const done = performance.now()
    times.push((done - now) * 1000)
    now = done
  }
  return { value: percentile(times, 0.5), count: times.length }
}

/** So many at a time, for so long: how many a second. */
export async function atOnce(
  act: (worker: number) => Act,
  width: number,
  ms: number,
): Promise<Paced> {
  const start = performance.now()
  let count = 0
  const work = async (once: Act) => {
    for (let number = 0; performance.now() < start + ms; number++) {
      await once(number)
      count++
    }
  }
  await Promise.all(Array.from({ length: width }, (_, worker) => work(act(worker))))
  return { value: (count / (performance.now() - start)) * 1000, count }
}

/** A lock and its unlock, of a key that nobody else wants; each worker has ten of its own. */
export function pairOf({ lock }: Locker): (worker: number) => Act {
  return (worker) => async (number) => {
    const held = await lock(`jobs/${worker}/${number % 10}`)
    await held.release()
  }
}
