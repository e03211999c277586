import type { Busy, Changed, Claimed, Granted, Refusal, Revoked } from '../port/index.ts'

/** What a call was answered with; a refusal is an answer too. */
export type Answer = Granted | Claimed | Busy | Changed | Revoked | Refused

export interface Refused {
  readonly outcome: 'refused'
  readonly refusal: Refusal
}
