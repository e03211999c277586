import type { Checker, Violated } from '../checker.js'
import { type Known, takenByForce } from '../forced-ends.js'

/**
 * I17: whoever is told to hold one of so many permits is no further back among those who believe to
 * hold one, and no two have one token. Others behind it may have a higher limit.
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
          violated(`${key}: ${before.length} hold before one who wants to be among ${limit}`)
        }
        if (before.some((other) => other.token === token)) {
          violated(`${key}: token ${token} was given to two`)
        }
      }
    },
  }
}
