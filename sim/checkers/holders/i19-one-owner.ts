import type { Checker, Violated } from '../checker.js'

/** I19: only the one primary grants: a second owner of the same disk is refused. */
export function oneOwner(violated: Violated): Checker {
  return {
    name: 'I19 one owner',
    secondOwner(outcome) {
      violated(`a second process that opened the disk of a running server got: ${outcome}`)
    },
  }
}
