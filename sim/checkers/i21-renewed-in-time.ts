import type { Checker, Violated } from '../checker.js'

/**
 * I21: a renewal that reaches the server while the lease lives is honoured, however much expires at
 * that moment and however long the server stood still before it looked. It was answered, so it
 * arrived, and that took no longer than messages can.
 *
 * That holds for leases whose keys nobody claims meanwhile: a claim that comes before the renewal
 * ends at once what is overdue in its way, so that others never wait for a stall to be over.
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
          `lease ${lease.lease} was lost though a renewal arrived at least ${spare.toFixed(1)} ms before its end`,
        )
      }
    },
  }
}
