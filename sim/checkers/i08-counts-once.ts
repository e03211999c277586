import type { Checker, Violated } from '../checker.js'

/** Each key that begins with this is claimed by one call, which has no request id. */
export const ONCE = 'once '

/** I8 within a server: a call that it carries out by way of a log counts once. */
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
