import type { Checker, Violated } from '../checker.js'

/**
 * I10: a lease never expires before its ttl and grace have passed on the server's clock since it
 * carried out the grant or renewal. It was carried out after it was sent.
 */
export function neverEarly(violated: Violated): Checker {
  return {
    name: 'I10 never early',
    gone({ lease, ttl, grace, renewedFrom }, end, { now, serverRate }) {
      if (end?.reason !== 'expired') return
      const early = renewedFrom + (ttl + grace) / serverRate - now
      if (early > 0.001) violated(`lease ${lease} expired at least ${early.toFixed(1)} ms early`)
    },
  }
}
