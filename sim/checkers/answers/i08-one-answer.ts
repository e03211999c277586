import type { Checker, Violated } from '../checker.js'
import type { Call } from '../history.js'

/** I8: one request id has one answer, even a negative one, however often it is sent. */
export function oneAnswer(violated: Violated): Checker {
  const answers = new Map<string, string>()
  const check = ({ request, answer }: Call): void => {
    if (request === undefined || !answer) return
    // The call was not executed, which says nothing about an earlier call with this id.
    if (answer.type === 'refused' && answer.code === 'timeout') return
    const now = JSON.stringify(answer)
    const before = answers.get(request)
    if (before !== undefined && before !== now) {
      violated(`request ${request} was answered ${before} and then ${now}`)
    }
    answers.set(request, now)
  }
  return { name: 'I8 one answer', called: check, repeated: check }
}
