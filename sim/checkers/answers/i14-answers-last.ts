import type { Checker, Violated } from '../checker.js'

/**
 * I14: no answer depends on data that can be lost. A call that starts after a client saw a revision
 * gets that revision or a later one, whatever crashed in between.
 */
export function answersLast(violated: Violated): Checker {
  let answered: { revision: number; at: number }[] = [{ revision: 0, at: 0 }]
  return {
    name: 'I14 answers last',
    revision(revision, invoked, { now }) {
      let known = 0
      for (const one of answered) if (one.at < invoked) known = Math.max(known, one.revision)
      if (revision < known) {
        violated(
          `a call got revision ${revision}, but started after revision ${known} was answered`,
        )
      }
      // Only a revision above all earlier ones adds information.
      if (revision > answered[answered.length - 1]!.revision) answered.push({ revision, at: now })
      if (answered.length > 64) answered = answered.slice(32)
    },
  }
}
