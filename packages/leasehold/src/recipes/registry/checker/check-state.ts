import type { Check, CheckStatus } from '../check/check.ts'

/** The result of an instance's checks so far: a pure value. */
export interface CheckState {
  readonly status: CheckStatus
  /** How many results in a row contradict the status. */
  readonly against: number
}

/**
 * The state after one more result. Going down takes `down` failures in a row, and coming up takes
 * `up` successes. So one lost packet does not remove a good instance, and one lucky answer does not
 * bring back a bad one. Changes between passing and warning take effect at once.
 */
export function nextState(
  { status, against }: CheckState,
  result: CheckStatus,
  { down, up }: Pick<Check, 'down' | 'up'>,
): CheckState {
  const wasDown = status === 'critical'
  const isDown = result === 'critical'
  if (wasDown === isDown) return { status: result, against: 0 }
  const needed = isDown ? down : up
  if (against + 1 >= needed) return { status: result, against: 0 }
  return { status, against: against + 1 }
}
