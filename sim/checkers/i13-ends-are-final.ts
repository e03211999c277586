import type { Checker, Violated } from '../checker.js'

/** I13: what was told to have ended never stands again. */
export function endsAreFinal(violated: Violated): Checker {
  const removed = new Map<string, number>()
  return {
    name: 'I13 ends are final',
    called(call, { now }) {
      if (call.kind === 'release' && call.answer?.type === 'done') {
        removed.set(`${call.key} ${call.token}`, now)
      }
    },
    read({ key, claims, invoked }) {
      for (const { token } of claims) {
        const at = removed.get(`${key} ${token}`)
        if (at !== undefined && at < invoked) {
          violated(`${key}: token ${token} was released and stands in line again`)
        }
      }
    },
  }
}
