import type { Checker, Violated } from '../checker.js'

/** I17: no more than the limit believe at once that they hold a permit, and no two have one token. */
export function permitsWithinLimit(violated: Violated): Checker {
  return {
    name: 'I17 permits within the limit',
    held(holding, others) {
      const { key, limit, token } = holding
      if (limit === 0) return
      const beside = others.filter((other) => other.key === key && other.awake() && other.hold.held)
      if (beside.length > limit) {
        violated(`${key}: ${beside.length} believe that they hold one of ${limit} permits`)
      }
      if (beside.some((other) => other !== holding && other.token === token)) {
        violated(`${key}: token ${token} was given to two`)
      }
    },
  }
}
