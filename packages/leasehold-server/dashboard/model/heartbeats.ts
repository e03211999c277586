export interface Rhythm {
  readonly beats: number
  /** The mean interval in milliseconds. */
  readonly every: number
  /** The standard deviation of the interval. */
  readonly jitter: number
  readonly longest: number
}

/** The rhythm of heartbeats at these times; `undefined` for fewer than three. */
export function rhythmOf(times: readonly number[]): Rhythm | undefined {
  if (times.length < 3) return undefined
  const gaps = times.slice(1).map((time, at) => time - times[at]!)
  const every = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
  const variance = gaps.reduce((sum, gap) => sum + (gap - every) ** 2, 0) / gaps.length
  return { beats: times.length, every, jitter: Math.sqrt(variance), longest: Math.max(...gaps) }
}
