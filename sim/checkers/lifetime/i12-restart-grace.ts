import type { Checker, Violated } from '../checker.js'

/** I12: after a restart every lease gets its full ttl again. */
export function restartGrace(violated: Violated): Checker {
  return {
    name: 'I12 restart grace',
    gone(
      { lease, ttl, grace, renewedFrom, parent, maxLife },
      end,
      { now, serverRate, serverStart, serverEnd },
    ) {
      // I10 checks these.
      if (parent !== undefined || maxLife < Infinity) return
      const span = (ttl + grace) / serverRate
      // An expiry before the crash may be reported after it.
      if (end?.reason !== 'expired' || renewedFrom + span <= serverEnd) return
      const early = serverStart + span - now
      if (early > 0.001) {
        violated(
          `lease ${lease} expired ${early.toFixed(1)} ms before its ttl after a restart was over`,
        )
      }
    },
  }
}
