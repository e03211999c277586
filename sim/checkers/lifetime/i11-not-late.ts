import type { Checker, Violated } from '../checker.js'

/** More than messages and writes take in a healthy system. */
const SLACK_MS = 300

/**
 * I11: in a healthy system, everything happens within its promised bound, and a lease that nobody
 * renews expires.
 */
export function notLate(violated: Violated): Checker {
  return {
    name: 'I11 not late',
    progressed(what, took, bound) {
      if (took <= bound) return
      violated(`${what} took ${took.toFixed(0)} ms; the promised maximum is ${bound.toFixed(0)} ms`)
    },
    remains(lease, record, read, { slowestRate }) {
      if (!record) violated(`lease ${lease}, which no client knows, never expired`)
      else {
        const late = read - (record.renewedFrom + (record.ttl + record.grace) / slowestRate)
        if (late > SLACK_MS) violated(`lease ${lease} exists ${late.toFixed(0)} ms after its end`)
      }
    },
  }
}
