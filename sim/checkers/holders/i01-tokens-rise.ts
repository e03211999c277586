import type { Checker, Violated } from '../checker.js'

/** I1: tokens on a key never repeat and rise with every grant, even across restarts. */
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
          // A request that was sent after the other client was notified must get a higher token.
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
