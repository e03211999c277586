import type { Checker, Violated } from '../checker.js'
import { contested, type Known, takenByForce } from '../forced-ends.js'

/**
 * I3: when a client is notified that it holds a key, no client with an older token still believes
 * that it holds it or may recover it, unless both are shared. A client that checks has lost it by
 * then.
 */
export function noStaleBelief(violated: Violated, known: Known): Checker {
  return {
    name: 'I3 no stale belief',
    held(holding, others) {
      for (const other of others) {
        if (other === holding || other.token > holding.token || !other.awake()) continue
        const key = contested(holding, other)
        if (key === undefined) continue
        const { state } = other.hold
        if (state !== 'held' && state !== 'lapsed') continue
        if (takenByForce(other, key, known)) continue
        violated(
          `${key}: ${holding.client} holds token ${holding.token} while ${other.client}'s token ${other.token} is ${state}, for ${other.hold.remaining().toFixed(1)} ms more`,
        )
      }
    },
  }
}
