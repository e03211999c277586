import type { Checker, Violated } from '../checker.js'
import { contested, type Known, livesOn, takenByForce } from '../forced-ends.js'

/**
 * I2: a key is granted again only after the older grant was released or has expired, unless both
 * are shared. If a client got an answer to a renewal sent at time t, its lease cannot expire before
 * t + ttl + grace on the server's clock. So no other client may be notified before that.
 */
export function oneGrantAtATime(violated: Violated, known: Known): Checker {
  return {
    name: 'I2 one grant at a time',
    held(holding, others, { now, serverRate }) {
      for (const other of others) {
        if (other === holding || other.token >= holding.token || other.ended <= now) continue
        const key = contested(holding, other)
        if (key === undefined || !other.hold.held || takenByForce(other, key, known)) continue
        const record = known.leases.get(other.lease)
        if (!record) continue
        const bounded = Math.min(livesOn(record), record.maxLife)
        const expires = record.renewedFrom + bounded / serverRate
        if (now < expires - 0.001) {
          violated(
            `${key}: ${holding.client} was given token ${holding.token} ${(expires - now).toFixed(1)} ms before ${other.client}'s token ${other.token} could have expired`,
          )
        }
      }
    },
  }
}
