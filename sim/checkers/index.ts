import type { Checker, Violated } from '../checker.js'
import type { LeaseRecord } from '../history.js'
import { tokensRise } from './i01-tokens-rise.js'
import { oneGrantAtATime } from './i02-one-grant-at-a-time.js'
import { noStaleBelief } from './i03-no-stale-belief.js'
import { fenceNeverFalls } from './i04-fence-never-falls.js'
import { newestIsAccepted } from './i05-newest-is-accepted.js'
import { nothingIsForgotten } from './i06-nothing-is-forgotten.js'
import { staleCallsChangeNothing } from './i07-stale-calls-change-nothing.js'
import { oneAnswer } from './i08-one-answer.js'
import { renewalsKeep } from './i09-renewals-keep.js'
import { neverEarly } from './i10-never-early.js'
import { notLate } from './i11-not-late.js'
import { restartGrace } from './i12-restart-grace.js'
import { endsAreFinal } from './i13-ends-are-final.js'
import { answersLast } from './i14-answers-last.js'
import { endsTogether } from './i15-ends-together.js'
import { watchesMissNothing } from './i16-watches-miss-nothing.js'
import { permitsWithinLimit } from './i17-permits-within-limit.js'
import { firstInFirstOut } from './i18-first-in-first-out.js'
import { oneOwner } from './i19-one-owner.js'
import { linearizable } from './i20-linearizable.js'
import { renewedInTime } from './i21-renewed-in-time.js'

type Make = (violated: Violated, known: Known) => Checker

/** What a client knows of its leases: when the renewal was sent that was last answered. */
interface Known {
  readonly leases: ReadonlyMap<string, LeaseRecord>
}

const MAKE: readonly Make[] = [
  tokensRise,
  (violated, { leases }) =>
    oneGrantAtATime(violated, (lease) => leases.get(lease)?.renewedFrom ?? -Infinity),
  noStaleBelief,
  fenceNeverFalls,
  newestIsAccepted,
  nothingIsForgotten,
  staleCallsChangeNothing,
  oneAnswer,
  renewalsKeep,
  neverEarly,
  notLate,
  restartGrace,
  endsAreFinal,
  answersLast,
  endsTogether,
  watchesMissNothing,
  permitsWithinLimit,
  firstInFirstOut,
  oneOwner,
  linearizable,
  renewedInTime,
  // I22, that self-preservation never delays an exclusive key, is about registrations, and there
  // are none yet: nothing delays an eviction.
]

/** All checkers. What one finds wrong is given to `violated` with its name. */
export function checkers(
  violated: (checker: string, message: string) => void,
  known: Known,
): readonly Checker[] {
  return MAKE.map((make) => {
    const checker: Checker = make((message) => violated(checker.name, message), known)
    return checker
  })
}
