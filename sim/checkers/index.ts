import { nothingIsForgotten } from './answers/i06-nothing-is-forgotten.js'
import { staleCallsChangeNothing } from './answers/i07-stale-calls-change-nothing.js'
import { countsOnce } from './answers/i08-counts-once.js'
import { oneAnswer } from './answers/i08-one-answer.js'
import { answersLast } from './answers/i14-answers-last.js'
import { watchesMissNothing } from './answers/i16-watches-miss-nothing.js'
import { answersAgree } from './answers/i20-answers-agree.js'
import { linearizable } from './answers/i20-linearizable.js'
import type { Checker, Violated } from './checker.js'
import type { Known as KnownLeases } from './forced-ends.js'
import { tokensRise } from './holders/i01-tokens-rise.js'
import { oneGrantAtATime } from './holders/i02-one-grant-at-a-time.js'
import { reclaimedUntouched } from './holders/i02-reclaimed-untouched.js'
import { noStaleBelief } from './holders/i03-no-stale-belief.js'
import { fenceNeverFalls } from './holders/i04-fence-never-falls.js'
import { newestIsAccepted } from './holders/i05-newest-is-accepted.js'
import { permitsWithinLimit } from './holders/i17-permits-within-limit.js'
import { firstInFirstOut } from './holders/i18-first-in-first-out.js'
import { oneOwner } from './holders/i19-one-owner.js'
import { renewalsKeep } from './lifetime/i09-renewals-keep.js'
import { neverEarly } from './lifetime/i10-never-early.js'
import { tiesLinger } from './lifetime/i10-ties-linger.js'
import { lifeEnds } from './lifetime/i11-life-ends.js'
import { notLate } from './lifetime/i11-not-late.js'
import { restartGrace } from './lifetime/i12-restart-grace.js'
import { endsAreFinal } from './lifetime/i13-ends-are-final.js'
import { rightReason } from './lifetime/i13-right-reason.js'
import { endsTogether } from './lifetime/i15-ends-together.js'
import { renewedInTime } from './lifetime/i21-renewed-in-time.js'

type Make = (violated: Violated, known: Known) => Checker

/** Facts about leases, and how much faster than a client's clock the server's may run. */
interface Known extends KnownLeases {
  readonly driftBound: number
  /** How much longer the leases of a remote store must live. */
  lingers(stream: string, grantedFrom: number, serverRate: number): number
}

const MAKE: readonly Make[] = [
  tokensRise,
  oneGrantAtATime,
  reclaimedUntouched,
  noStaleBelief,
  fenceNeverFalls,
  newestIsAccepted,
  nothingIsForgotten,
  staleCallsChangeNothing,
  oneAnswer,
  countsOnce,
  renewalsKeep,
  neverEarly,
  (violated, known) => tiesLinger(violated, (...lease) => known.lingers(...lease)),
  notLate,
  lifeEnds,
  restartGrace,
  endsAreFinal,
  (violated, known) => rightReason(violated, known, known.driftBound),
  answersLast,
  endsTogether,
  watchesMissNothing,
  permitsWithinLimit,
  firstInFirstOut,
  oneOwner,
  linearizable,
  answersAgree,
  renewedInTime,
  // I22 says that self-preservation never delays an exclusive key. It concerns registrations, which
  // do not exist here: nothing delays an eviction.
]

/** All checkers. Each passes its violations to `violated`, with its name. */
export function checkers(
  violated: (checker: string, message: string) => void,
  known: Known,
): readonly Checker[] {
  return MAKE.map((make) => {
    const checker: Checker = make((message) => violated(checker.name, message), known)
    return checker
  })
}
