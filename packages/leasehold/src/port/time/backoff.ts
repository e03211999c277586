import type { Random } from '../random.ts'

const MIN_MS = 50
const MAX_MS = 5000

/**
 * How many milliseconds to wait before trying again after so many failures in a row. The wait
 * doubles up to a limit. Its second half is random, so that clients which failed together do not
 * come back together.
 */
export function backoff(failures: number, random: Random, min = MIN_MS, max = MAX_MS): number {
  const longest = Math.min(min * 2 ** failures, max)
  return longest * (0.5 + 0.5 * random.next())
}
