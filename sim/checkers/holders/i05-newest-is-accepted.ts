import type { Checker, Violated } from '../checker.js'

/** I5: a write with the newest granted token is never refused. */
export function newestIsAccepted(violated: Violated): Checker {
  const newest = new Map<string, number>()
  return {
    name: 'I5 newest is accepted',
    held({ keys, token }) {
      for (const key of keys) newest.set(key, Math.max(newest.get(key) ?? 0, token))
    },
    wrote({ key, token, accepted }) {
      if (accepted || token < (newest.get(key) ?? 0)) return
      violated(`${key}: token ${token}, the newest, was refused`)
    },
  }
}
