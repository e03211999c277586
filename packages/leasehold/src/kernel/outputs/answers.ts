import type { Busy, Changed, Claimed, Granted, Refusal, Revoked } from '../../port/index.ts'

/** The answer to a call. A refusal is an answer, too. */
export type Answer = Granted | Claimed | Busy | Changed | Revoked | Refused

export interface Refused {
  readonly outcome: 'refused'
  readonly refusal: Refusal
}

export function isRefused(answer: Answer): answer is Refused {
  return 'outcome' in answer && answer.outcome === 'refused'
}
