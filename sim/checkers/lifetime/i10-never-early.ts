import type { End } from 'leasehold/port'
import type { Checker, Truth, Violated } from '../checker.js'
import { ancestry, concerns, type Known, livesOn, period } from '../forced-ends.js'
import type { LeaseRecord } from '../history.js'

/**
 * I10: a lease never expires before its ttl and grace have passed on the server's clock since the
 * server executed the grant or renewal, or before the end of its maximum life. A broken lease never
 * ends before the period is over. A call is executed after it was sent.
 */
export function neverEarly(violated: Violated, known: Known): Checker {
  const check = (lease: LeaseRecord, end: End | undefined, truth: Truth): void => {
    if (end?.reason === 'expired') notEarly(lease, truth)
    else if (end?.reason === 'broken') afterPeriod(lease, end, truth)
  }
  const notEarly = (record: LeaseRecord, { now, serverRate }: Truth): void => {
    // It may have ended with one of its ancestors.
    const family = ancestry(record, known)
    if (family.at(-1)!.parent !== undefined) return
    const due = Math.min(
      ...family.map((one) =>
        Math.min(
          one.renewedFrom + livesOn(one) / serverRate,
          one.grantedFrom + one.maxLife / serverRate,
        ),
      ),
    )
    const early = due - now
    if (early > 0.001) {
      violated(`lease ${record.lease} expired at least ${early.toFixed(1)} ms early`)
    }
  }
  const afterPeriod = (record: LeaseRecord, { by, why }: End, { now, serverRate }: Truth): void => {
    const breaks = known.forcedEnds.filter(
      (force) => period(force) > 0 && concerns(force, record, known),
    )
    const same = breaks.filter(({ request }) => request.by === by && request.why === why)
    if (same.length === 0) {
      if (ancestry(record, known).at(-1)!.parent !== undefined) return
      violated(
        `lease ${record.lease} was broken by ${by} because of ${why}, but nobody requested that`,
      )
      return
    }
    const early = Math.min(...same.map((one) => one.asked + period(one) / serverRate)) - now
    if (early > 0.001) {
      violated(`lease ${record.lease} ended ${early.toFixed(1)} ms before its period was over`)
    }
  }
  return {
    name: 'I10 never early',
    gone: check,
    removed: ({ end }, lease, truth) => check(lease, end, truth),
  }
}
