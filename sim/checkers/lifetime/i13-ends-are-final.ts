import type { Checker, Violated } from '../checker.js'

/** I13: an end that a client was notified of is final, whatever crashes after that. */
export function endsAreFinal(violated: Violated): Checker {
  const released = new Map<string, number>()
  const gone = new Map<string, number>()
  return {
    name: 'I13 ends are final',
    called({ kind, key, token, answer }, { now }) {
      if (kind === 'release' && answer?.type === 'done') released.set(`${key} ${token}`, now)
    },
    gone({ lease }, _end, { now }) {
      if (!gone.has(lease)) gone.set(lease, now)
    },
    revived(client, state) {
      violated(`${client} had lost a lock, and then it was ${state}`)
    },
    renewed({ lease: { lease }, sent, lost }) {
      if (!lost && (gone.get(lease) ?? Infinity) < sent) {
        violated(`lease ${lease} was reported as ended and was renewed after that`)
      }
    },
    read({ key, claims, invoked }) {
      for (const { token, lease } of claims) {
        if ((released.get(`${key} ${token}`) ?? Infinity) < invoked) {
          violated(`${key}: token ${token} was released and is in the queue again`)
        }
        if ((gone.get(lease) ?? Infinity) < invoked) {
          violated(`${key}: lease ${lease} has ended, but its token ${token} is in the queue`)
        }
      }
    },
  }
}
