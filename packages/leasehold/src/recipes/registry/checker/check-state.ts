import type { Check, CheckStatus } from '../check/check.ts'

/** What the checks of one instance have come to: pure values, for whoever wants to replay them. */
export interface CheckState {
  readonly status: CheckStatus
  /** How many results in a row have spoken against that status. */
  readonly against: number
}

/**
 * The state after one more result. Going down takes `down` failures in a row and coming back takes
 * `up` successes, so that one lost packet does not throw out a good instance, and one lucky answer
 * does not bring back a bad one. Between passing and warning nothing is at stake, and it follows
 * each result.
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
