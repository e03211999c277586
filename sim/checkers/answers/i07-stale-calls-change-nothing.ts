import type { Checker, Violated } from '../checker.js'

/** I7: a release with a token that is not the lease's own is refused, and frees nobody's claim. */
export function staleCallsChangeNothing(violated: Violated): Checker {
  const granted = new Map<string, string>()
  return {
    name: 'I7 stale calls change nothing',
    called({ kind, key, token, lease, answer }) {
      if (answer?.type !== 'done') return
      if (kind === 'claim') granted.set(`${key} ${answer.token}`, lease)
      const owner = granted.get(`${key} ${token}`)
      if (kind === 'release' && owner !== undefined && owner !== lease) {
        violated(`${key}: lease ${lease} released token ${token}, which is lease ${owner}'s`)
      }
    },
  }
}
