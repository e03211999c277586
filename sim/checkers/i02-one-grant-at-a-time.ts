import type { Checker, Violated } from '../checker.js'

/**
 * I2: a key is granted anew only after the older grant was given back or has expired. A client that
 * was answered a renewal sent at a time t cannot have expired before t + ttl + grace on the
 * server's clock, so nobody else may have been told before that.
 */
export function oneGrantAtATime(
  violated: Violated,
  renewedFrom: (lease: string) => number,
): Checker {
  return {
    name: 'I2 one grant at a time',
    held(holding, others, { now, serverRate }) {
      if (holding.limit > 0) return
      for (const other of others) {
        if (other === holding || other.key !== holding.key || other.limit > 0) continue
        if (other.token >= holding.token || other.ended <= now || !other.hold.held) continue
        const expires = renewedFrom(other.lease) + (other.ttl + other.grace) / serverRate
        if (now < expires - 0.001) {
          violated(
            `${holding.key}: ${holding.client} was given token ${holding.token} ${(expires - now).toFixed(1)} ms before ${other.client}'s token ${other.token} could have expired`,
          )
        }
      }
    },
  }
}
