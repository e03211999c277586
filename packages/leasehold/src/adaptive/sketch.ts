/**
 * How often which length of time was seen, in buckets whose borders grow by a fixed part: bucket
 * `k` counts the times above `GROWTH^(k-1)` and up to `GROWTH^k` milliseconds. So every quantile is
 * known within the same relative error, whether it is milliseconds or days, in a fixed and small
 * room; and two sketches are added bucket by bucket, exactly.
 */
export class Sketch {
  readonly #weights = new Float64Array(BUCKETS)

  add(ms: number): void {
    this.addToBucket(bucketOf(ms), 1)
  }

  addToBucket(bucket: number, weight: number): void {
    this.#weights[bucket]! += weight
  }

  addAll(other: Sketch): void {
    for (let k = 0; k < BUCKETS; k++) this.#weights[k]! += other.#weights[k]!
  }

  /** How many times were seen. */
  get weight(): number {
    return this.#weights.reduce((sum, weight) => sum + weight, 0)
  }

  get mean(): number {
    const sum = this.bars.reduce((sum, { ms, weight }) => sum + ms * weight, 0)
    return sum / Math.max(this.weight, Number.MIN_VALUE)
  }

  /** What is in the buckets that are not empty, the shortest first. */
  get bars(): Bar[] {
    const bars: Bar[] = []
    this.#weights.forEach((weight, bucket) => {
      if (weight > 0) bars.push({ bucket, ms: middleOf(bucket), weight })
    })
    return bars
  }

  /** The time that so large a share of what was seen did not exceed; 0 where nothing was seen. */
  quantile(share: number): number {
    const bars = this.bars
    let left = share * this.weight
    for (const { ms, weight } of bars) {
      left -= weight
      // Sums of parts are never quite exact.
      if (left <= 1e-9) return ms
    }
    return bars.at(-1)?.ms ?? 0
  }
}

export interface Bar {
  readonly bucket: number
  /** The time that stands for all in this bucket: none of them is further away than `ERROR`. */
  readonly ms: number
  readonly weight: number
}

const GROWTH = 1.1
/** The relative error of all times that a sketch tells. */
export const ERROR = (GROWTH - 1) / (GROWTH + 1)
/** Up to a year. What is shorter than a millisecond or longer than a year counts as that. */
export const BUCKETS = 256

export function bucketOf(ms: number): number {
  const bucket = Math.ceil(Math.log(ms) / Math.log(GROWTH) - 1e-9)
  return Math.min(Math.max(bucket, 0), BUCKETS - 1)
}

/** The longest time in this bucket. */
export function borderOf(bucket: number): number {
  return GROWTH ** bucket
}

function middleOf(bucket: number): number {
  return (2 * borderOf(bucket)) / (1 + GROWTH)
}
