import type { Checker, Violated } from '../checker.js'

/** I6: an acknowledged lease is never unknown: it lives, or its end is known. */
export function nothingIsForgotten(violated: Violated): Checker {
  return {
    name: 'I6 nothing is forgotten',
    gone({ lease, ended }, end) {
      if (!end && !ended) violated(`lease ${lease} was granted and is unknown now`)
    },
  }
}
