import type { Checker, Violated } from '../checker.js'
import { concerns, type Known, livesOn, period } from '../forced-ends.js'

/**
 * I11 for breaks and maximum lives: no renewal goes beyond them. The answer to a renewal after a
 * break says how much time is left, which is never more than the rest of the period. A restart
 * extends lives, so this checks only limits that were set after the last restart. A replica counts
 * from when it applied the entry, which is later by its lag behind the log. A later break whose entry
 * was long on its way may end later than the one that it replaces: replicas compare breaks in the time
 * of the log. A life ends late then, never early.
 */
export function lifeEnds(violated: Violated, known: Known): Checker {
  return {
    name: 'I11 life ends',
    renewed({ lease, sent, lost, capped }, { serverRate, slowestRate, prolonged, lag, now }) {
      if (lost) return
      const breaks = known.forcedEnds.filter((force) => {
        const { target } = force.request
        if (period(force) === 0 || force.asked < prolonged) return false
        return 'lease' in target && concerns(force, lease, known) && target.lease === lease.lease
      })
      const isOnLog = lag(0) > 0
      const ends = breaks
        .filter(({ answered }) => answered < sent)
        .map((force) => {
          const replacing = isOnLog ? breaks.filter(({ asked }) => asked > force.asked) : []
          return Math.max(
            force.answered + period(force) / slowestRate + lag(force.asked),
            ...replacing.map((later) => now + period(later) / slowestRate),
          )
        })
      if (lease.grantedFrom > prolonged) {
        ends.push(lease.grantedBy + lease.maxLife / slowestRate + lag(lease.grantedFrom))
      }
      const left = Math.max(0, (Math.min(...ends) - sent) * serverRate)
      if (!(left < livesOn(lease))) return
      const granted = capped?.remaining ?? livesOn(lease)
      if (granted <= left + 0.001) return
      violated(
        `lease ${lease.lease} was renewed for ${granted.toFixed(1)} ms, but its life ends in ${left.toFixed(1)} ms`,
      )
    },
  }
}
