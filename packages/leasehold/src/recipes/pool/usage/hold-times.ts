import type { HoldTimes } from './usage.ts'

/** Two buckets per doubling of the time, from one second to two months. */
const BUCKETS_PER_DOUBLING = 2
const BUCKET_MAX = 45
/** Above this number of observations all counts are halved, so that a change of habit shows. */
const WEIGHT_MAX = 100

function bucketOf(ms: number): number {
  const bucket = Math.ceil(Math.log2(Math.max(ms, 1) / 1000) * BUCKETS_PER_DOUBLING)
  return Math.min(Math.max(bucket, 0), BUCKET_MAX)
}

/** The time that represents a bucket: its geometric mean. */
function middleOf(bucket: number): number {
  return 1000 * 2 ** ((bucket - 0.5) / BUCKETS_PER_DOUBLING)
}

/** The sum of both. */
export function added(a: HoldTimes | undefined, b: HoldTimes): HoldTimes {
  const counts: Record<number, number> = { ...a }
  for (const [bucket, count] of Object.entries(b)) {
    counts[Number(bucket)] = (counts[Number(bucket)] ?? 0) + count
  }
  const sum = Object.values(counts).reduce((total, count) => total + count, 0)
  if (sum <= WEIGHT_MAX) return counts
  const halved = Object.entries(counts).map(([bucket, count]) => [bucket, count / 2] as const)
  return Object.fromEntries(halved.filter(([, count]) => count >= 0.1))
}

export function observed(times: HoldTimes | undefined, ms: number): HoldTimes {
  return added(times, { [bucketOf(ms)]: 1 })
}

/** How many more milliseconds something that was held for `held` will probably be held. */
export interface Expectation {
  readonly rest: number
  /** The number of observations behind it. */
  readonly seen: number
}

/** The mean over all observations longer than `held`, or half of `held` if there is none. */
export function expectation(times: HoldTimes | undefined, held = 0): Expectation | undefined {
  if (times === undefined) return undefined
  let [count, sum, seen] = [0, 0, 0]
  for (const [bucket, weight] of Object.entries(times)) {
    seen += weight
    const rest = middleOf(Number(bucket)) - held
    if (rest <= 0) continue
    count += weight
    sum += weight * rest
  }
  if (seen === 0) return undefined
  return { rest: count > 0 ? sum / count : held / 2, seen }
}
