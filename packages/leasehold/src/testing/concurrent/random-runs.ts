/** How long a failure is shrunk at most. */
const SHRINKING_MS = 60_000

/** Parameters of fast-check's `assert`. */
export interface RandomRuns {
  readonly numRuns: number
  readonly endOnFailure: boolean
  readonly seed?: number
  readonly interruptAfterTimeLimit?: number
}

/**
 * How a random comparison is run. `LEASEHOLD_RUNS=10` runs it ten times as often as usual,
 * `LEASEHOLD_SEED` runs it with the seed that a failure printed, and `LEASEHOLD_SHRINK=no` reports a
 * failure without shrinking it.
 */
export function randomRuns(usual: number): RandomRuns {
  const { LEASEHOLD_RUNS = '1', LEASEHOLD_SEED, LEASEHOLD_SHRINK } = process.env
  return {
    numRuns: Math.ceil(usual * Number(LEASEHOLD_RUNS)),
    endOnFailure: LEASEHOLD_SHRINK === 'no',
    ...(LEASEHOLD_SEED !== undefined && { seed: Number(LEASEHOLD_SEED) }),
    // The time limit is for shrinking: long runs have none.
    ...(LEASEHOLD_RUNS === '1' && { interruptAfterTimeLimit: 2 * SHRINKING_MS }),
  }
}
