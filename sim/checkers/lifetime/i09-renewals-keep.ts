import type { Checker, Violated } from '../checker.js'

/** I9: a renewal keeps the token and gives exactly the full ttl: not less, and not the sum. */
export function renewalsKeep(violated: Violated): Checker {
  const given = new Map<string, Set<number>>()
  return {
    name: 'I9 renewals keep',
    called({ kind, lease, answer }) {
      if (kind !== 'claim' || answer?.type !== 'done') return
      given.set(lease, (given.get(lease) ?? new Set()).add(answer.token))
    },
    leaseRead({ lease, ttl, grace, renewedAt, until, tokens, unanswered }) {
      const lives = until - renewedAt
      if (Math.abs(lives - ttl - grace) > 0.001) {
        violated(`lease ${lease} lives ${lives.toFixed(1)} ms after a renewal, not ${ttl + grace}`)
      }
      const strange = tokens.filter((token) => !given.get(lease)?.has(token))
      if (strange.length > unanswered) {
        violated(`lease ${lease} has the tokens ${strange.join(', ')}, which it was never given`)
      }
    },
  }
}
