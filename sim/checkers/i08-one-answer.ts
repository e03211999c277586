import type { Checker, Violated } from '../checker.js'
import type { Call } from '../history.js'

/** I8: one request id has one answer, a negative one included, however often it is sent. */
export function oneAnswer(violated: Violated): Checker {
  const answers = new Map<string, string>()
  const hear = ({ request, answer }: Call): void => {
    if (request === undefined || !answer) return
    // The call was not carried out, which says nothing about an earlier one with this id.
    if (answer.type === 'refused' && answer.code === 'timeout') return
    const said = JSON.stringify(answer)
    const before = answers.get(request)
    if (before !== undefined && before !== said) {
      violated(`request ${request} was answered ${before} and then ${said}`)
    }
    answers.set(request, said)
  }
  return { name: 'I8 one answer', called: hear, repeated: hear }
}
