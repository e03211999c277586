import type { Checker, Violated } from '../checker.js'

/** More than messages and writes take in a system that is whole. */
const SLACK_MS = 300

/**
 * I11: in a system that is whole, what is promised to happen happens within the promised bound, and
 * what nobody renews runs out.
 */
export function notLate(violated: Violated): Checker {
  return {
    name: 'I11 not late',
    progressed(what, took, bound) {
      if (took <= bound) return
      violated(`${what} took ${took.toFixed(0)} ms, at most ${bound.toFixed(0)} ms are promised`)
    },
    remains(lease, record, read, { slowestRate }) {
      if (!record) violated(`lease ${lease}, which nobody knows to have, never ran out`)
      else {
        const late = read - (record.renewedFrom + (record.ttl + record.grace) / slowestRate)
        if (late > SLACK_MS) violated(`lease ${lease} is there ${late.toFixed(0)} ms after its end`)
      }
    },
  }
}
