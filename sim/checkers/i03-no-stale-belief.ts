import type { Checker, Violated } from '../checker.js'

/**
 * I3: when somebody is told that they hold a key, nobody with an older token believes so still, or
 * that it could be theirs again: whoever looks has lost it by then.
 */
export function noStaleBelief(violated: Violated): Checker {
  return {
    name: 'I3 no stale belief',
    held(holding, others) {
      if (holding.limit > 0) return
      for (const other of others) {
        if (other === holding || other.key !== holding.key || other.limit > 0) continue
        if (other.token > holding.token || !other.awake()) continue
        const { state } = other.hold
        if (state !== 'held' && state !== 'lapsed') continue
        violated(
          `${holding.key}: ${holding.client} holds token ${holding.token} while ${other.client}'s token ${other.token} is ${state}, for ${other.hold.remaining().toFixed(1)} ms more`,
        )
      }
    },
  }
}
