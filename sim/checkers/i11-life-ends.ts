import type { Checker, Violated } from '../checker.js'
import { concerns, type Known, livesOn, period } from '../forced-ends.js'

/**
 * I11 for breaks and longest lives: no renewal passes them. Whoever renews after the break was
 * answered is told how much is left, and that is never more than the rest of the period. A restart
 * prolongs lives, so only those are judged that were bounded after the last one. A replica counts from
 * when it learnt of it, which is later by as much as it is behind the log.
 */
export function lifeEnds(violated: Violated, known: Known): Checker {
  return {
    name: 'I11 life ends',
    renewed({ lease, sent, lost, capped }, { serverRate, slowestRate, prolonged, lag }) {
      if (lost) return
      const ends = known.forcedEnds
        .filter((force) => {
          const { target } = force.request
          if (period(force) === 0 || force.answered >= sent || force.asked < prolonged) return false
          return 'lease' in target && concerns(force, lease, known) && target.lease === lease.lease
        })
        .map((force) => force.answered + period(force) / slowestRate + lag(force.asked))
      if (lease.grantedFrom > prolonged) {
        ends.push(lease.grantedBy + lease.maxLife / slowestRate + lag(lease.grantedFrom))
      }
      const left = Math.max(0, (Math.min(...ends) - sent) * serverRate)
      if (!(left < livesOn(lease))) return
      const told = capped?.remaining ?? livesOn(lease)
      if (told <= left + 0.001) return
      violated(
        `lease ${lease.lease} was renewed for ${told.toFixed(1)} ms, and its life ends in ${left.toFixed(1)} ms`,
      )
    },
  }
}
