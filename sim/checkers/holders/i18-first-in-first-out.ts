import type { Checker, Violated } from '../checker.js'

/** I18: earlier claims hold earlier: the holders are always at the head of the queue. */
export function firstInFirstOut(violated: Violated): Checker {
  return {
    name: 'I18 first in, first out',
    read({ key, claims, holders }) {
      for (let at = 1; at < claims.length; at++) {
        if (claims[at]!.token <= claims[at - 1]!.token) {
          violated(`${key}: token ${claims[at]!.token} is behind ${claims[at - 1]!.token}`)
        }
      }
      if (claims.length > 0 && holders === 0) violated(`${key}: there is a queue, but no holder`)
      if (claims[0]?.mode === 'exclusive' && holders > 1)
        violated(`${key}: ${holders} hold although one is exclusive`)
    },
  }
}
