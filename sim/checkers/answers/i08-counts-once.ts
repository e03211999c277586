import type { Checker, Violated } from '../checker.js'

/** The prefix of keys that are claimed by exactly one call, without a request id. */
export const ONCE = 'once '

/** I8 within a server: a call that goes through a log is executed once. */
export function countsOnce(violated: Violated): Checker {
  return {
    name: 'I8 counts once',
    finish({ steps }) {
      const tokens = new Map<string, number>()
      for (const { type, key, token } of steps.flatMap(({ events }) => events)) {
        if (type !== 'claimed' || !key.startsWith(ONCE)) continue
        const known = tokens.get(key) ?? token
        if (known !== token) violated(`one call claimed ${key} with tokens ${known} and ${token}`)
        tokens.set(key, known)
      }
    },
  }
}
