import type { Checker, Violated } from '../checker.js'

/** I11: in a system that is whole, what is promised to happen happens within the promised bound. */
export function notLate(violated: Violated): Checker {
  return {
    name: 'I11 not late',
    progressed(what, took, bound) {
      if (took <= bound) return
      violated(`${what} took ${took.toFixed(0)} ms, at most ${bound.toFixed(0)} ms are promised`)
    },
  }
}
