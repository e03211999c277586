import type { Busy, Changed, Claimed, Granted, Refusal, RequestId, Revoked } from '../port/index.ts'
import type { Recent } from './recent.ts'

/** What a call was answered with; a refusal is an answer too. */
export type Answer = Granted | Claimed | Busy | Changed | Revoked | Refused

export interface Refused {
  readonly outcome: 'refused'
  readonly refusal: Refusal
}

/** The answers to the latest calls that had a request id. */
export type Requests = Recent<RequestId, Answer>

export function isRefused(answer: Answer): answer is Refused {
  return 'outcome' in answer && answer.outcome === 'refused'
}
