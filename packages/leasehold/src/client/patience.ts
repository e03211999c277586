import type { Random } from '../port/index.ts'

const REST_MIN_MS = 50
const REST_MAX_MS = 5000

/**
 * How long to rest after so many failures in a row: longer each time, but never long, and by chance
 * not as long as everybody else who has failed at the same moment.
 */
export function restAfter(failures: number, random: Random): number {
  const longest = Math.min(REST_MIN_MS * 2 ** failures, REST_MAX_MS)
  return longest * (0.5 + 0.5 * random.next())
}
