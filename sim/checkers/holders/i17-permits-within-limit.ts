import type { Checker, Violated } from '../checker.js'
import { type Known, takenByForce } from '../forced-ends.js'

/**
 * I17: a client that was granted one of n permits is among the first n clients that believe that
 * they hold one, and no two have the same token. Others behind it may have a higher limit.
 */
export function permitsWithinLimit(violated: Violated, known: Known): Checker {
  return {
    name: 'I17 permits within the limit',
    held(holding, others) {
      const { keys, limit, token, shared } = holding
      if (!shared) return
      for (const key of keys) {
        const before = others.filter(
          (other) =>
            other !== holding &&
            other.keys.includes(key) &&
            other.token <= token &&
            other.awake() &&
            other.hold.held &&
            !takenByForce(other, key, known),
        )
        if (limit > 0 && before.length >= limit) {
          violated(`${key}: ${before.length} clients hold before one with a limit of ${limit}`)
        }
        if (before.some((other) => other.token === token)) {
          violated(`${key}: token ${token} was given to two clients`)
        }
      }
    },
  }
}
