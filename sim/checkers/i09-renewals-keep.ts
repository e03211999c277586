import type { Checker, Violated } from '../checker.js'

/** I9: a renewal neither changes a token nor shortens, nor adds up: it gives the full ttl, no more. */
export function renewalsKeep(violated: Violated): Checker {
  return {
    name: 'I9 renewals keep',
    leaseRead({ lease, ttl, grace, renewedAt, until, tokens, held }) {
      const lives = until - renewedAt
      if (Math.abs(lives - ttl - grace) > 0.001) {
        violated(`lease ${lease} lives ${lives.toFixed(1)} ms after a renewal, not ${ttl + grace}`)
      }
      for (const token of held) {
        if (!tokens.includes(token))
          violated(`lease ${lease} holds token ${token}, but the store has ${tokens.join(', ')}`)
      }
    },
  }
}
