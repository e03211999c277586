import type { Checker, Violated } from '../checker.js'

/** I1: tokens on a key are never given twice, and rise with every grant, across restarts too. */
export function tokensRise(violated: Violated): Checker {
  const given = new Map<string, { token: number; notified: number; client: string }[]>()
  return {
    name: 'I1 tokens rise',
    held({ keys, token, invoked, notified, client }) {
      for (const key of keys) {
        const earlier = given.get(key) ?? []
        given.set(key, earlier)
        for (const other of earlier) {
          if (other.token === token) {
            violated(`${key}: token ${token} was given to ${other.client} and again to ${client}`)
          }
          // Who asked only after the other had been notified must come after the other.
          if (other.notified < invoked && other.token > token) {
            violated(
              `${key}: token ${token} was given to ${client} after ${other.token} to ${other.client}`,
            )
          }
        }
        earlier.push({ token, notified, client })
      }
    },
  }
}
