import type { Checker, Violated } from '../checker.js'

/**
 * I21: a renewal that reaches the server while the lease lives is honoured, however much expires at
 * that moment and however long the server was stalled before. An answered renewal has arrived, at
 * the latest after the maximum delay of a message.
 *
 * This applies to leases whose keys nobody claims meanwhile: a claim before the renewal ends
 * overdue leases in its way at once, so that clients never wait for a stall to end.
 */
export function renewedInTime(violated: Violated): Checker {
  return {
    name: 'I21 renewed in time',
    renewed({ lease, sent, knownAtSending, lost, end }, { serverRate, delay }) {
      if (!lost || lease.claimed || end?.reason !== 'expired') return
      if (lease.parent !== undefined || lease.maxLife < Infinity) return
      const { ttl, grace } = lease
      const spare = knownAtSending + (ttl + grace) / serverRate - (sent + delay)
      if (spare > 0.001) {
        violated(
          `lease ${lease.lease} was lost although a renewal arrived at least ${spare.toFixed(1)} ms before its end`,
        )
      }
    },
  }
}
