import type { Checker, Violated } from '../checker.js'

/** I4: the tokens that a fenced resource accepts never go down, even across its own restarts. */
export function fenceNeverFalls(violated: Violated): Checker {
  const highest = new Map<string, number>()
  return {
    name: 'I4 fence never falls',
    wrote({ key, token, accepted }) {
      if (!accepted) return
      const before = highest.get(key) ?? 0
      if (token < before) violated(`${key}: token ${token} was accepted after ${before}`)
      highest.set(key, Math.max(before, token))
    },
  }
}
