/** A number that must not keep growing, and the growth that noise may cause. */
export interface Measure {
  readonly name: string
  readonly unit: string
  /** The allowed growth: this fraction of the mean, or `atLeast`, whichever is larger. */
  readonly fraction: number
  readonly atLeast: number
}

export interface Verdict {
  readonly measure: Measure
  readonly first: number
  readonly mean: number
  readonly last: number
  /** The rise of a straight line through the last two thirds of the values. */
  readonly growth: number
  readonly allowed: number
  readonly isPlateau: boolean
}

/** The first third of the time is for warming up. */
const WARM_UP = 1 / 3

export function judge(
  measure: Measure,
  times: readonly number[],
  values: readonly number[],
): Verdict {
  const from = Math.floor(times.length * WARM_UP)
  const x = times.slice(from)
  const y = values.slice(from)
  const mean = y.reduce((sum, value) => sum + value, 0) / y.length
  const growth = slope(x, y) * (x.at(-1)! - x[0]!)
  const allowed = Math.max(measure.fraction * mean, measure.atLeast)
  return {
    measure,
    first: y[0]!,
    mean,
    last: y.at(-1)!,
    growth,
    allowed,
    isPlateau: growth <= allowed,
  }
}

/** The slope of the least-squares line. */
function slope(x: readonly number[], y: readonly number[]): number {
  const meanX = x.reduce((sum, value) => sum + value, 0) / x.length
  const meanY = y.reduce((sum, value) => sum + value, 0) / y.length
  let above = 0
  let below = 0
  for (const [index, value] of x.entries()) {
    above += (value - meanX) * (y[index]! - meanY)
    below += (value - meanX) ** 2
  }
  return below === 0 ? 0 : above / below
}
