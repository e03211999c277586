import type { Checker, Violated } from '../checker.js'

/** I6: a lease that was acknowledged is never simply unknown: it lives, or it is known how it ended. */
export function nothingIsForgotten(violated: Violated): Checker {
  return {
    name: 'I6 nothing is forgotten',
    gone({ lease, ended }, end) {
      if (!end && !ended) violated(`lease ${lease} was granted and is not known any more`)
    },
  }
}
