import type { Checker, Violated } from '../checker.js'

/**
 * I14: no answer rests on what can be lost. Whoever asks after somebody was told of a revision is
 * told of that one or a later one, whatever crashed in between.
 */
export function answersLast(violated: Violated): Checker {
  let answered: { revision: number; at: number }[] = [{ revision: 0, at: 0 }]
  return {
    name: 'I14 answers last',
    revision(revision, invoked, { now }) {
      let known = 0
      for (const one of answered) if (one.at < invoked) known = Math.max(known, one.revision)
      if (revision < known) {
        violated(`revision ${revision} was told to one who asked after ${known} had been told`)
      }
      // Only those that are higher than all before them say anything new.
      if (revision > answered[answered.length - 1]!.revision) answered.push({ revision, at: now })
      if (answered.length > 64) answered = answered.slice(32)
    },
  }
}
