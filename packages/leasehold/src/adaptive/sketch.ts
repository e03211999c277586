/**
 * Counts lengths of time in buckets whose borders grow by a fixed factor: bucket `k` counts the times
 * above `GROWTH^(k-1)` and up to `GROWTH^k` milliseconds. So every quantile has the same relative
 * error, for milliseconds and for days, in a small and fixed size. Two sketches are added bucket by
 * bucket, exactly.
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

  /** How many times were counted. */
  get weight(): number {
    return this.#weights.reduce((sum, weight) => sum + weight, 0)
  }

  get mean(): number {
    const sum = this.bars.reduce((sum, { ms, weight }) => sum + ms * weight, 0)
    return sum / Math.max(this.weight, Number.MIN_VALUE)
  }

  /** The buckets that are not empty, shortest first. */
  get bars(): Bar[] {
    const bars: Bar[] = []
    this.#weights.forEach((weight, bucket) => {
      if (weight > 0) bars.push({ bucket, ms: middleOf(bucket), weight })
    })
    return bars
  }

  /** The time that this share of the counted times did not exceed; 0 if the sketch is empty. */
  quantile(share: number): number {
    const bars = this.bars
    let left = share * this.weight
    for (const { ms, weight } of bars) {
      left -= weight
      // Sums of fractions are never quite exact.
      if (left <= 1e-9) return ms
    }
    return bars.at(-1)?.ms ?? 0
  }
}

export interface Bar {
  readonly bucket: number
  /** The time that stands for this bucket: no time in it differs by more than `ERROR`. */
  readonly ms: number
  readonly weight: number
}

const GROWTH = 1.1
/** The relative error of all times of a sketch. */
export const ERROR = (GROWTH - 1) / (GROWTH + 1)
/** Up to a year. Shorter than a millisecond counts as a millisecond, longer than a year as a year. */
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
