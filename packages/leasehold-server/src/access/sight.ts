import type { Ahead, Key, LeaseStore, Notice } from 'leasehold/port'
import type { Shown } from './guarded-watch.ts'
import { type Passed, withoutReason } from './lease-gate.ts'
import type { Principal } from './principal.ts'
import { allowsKey } from './rights.ts'

/** An answer as it is shown: only whoever may read a key sees the value of the claim before its own. */
export function shownAnswer<Answer extends { readonly ahead: readonly Ahead[] }>(
  { rights }: Principal,
  answer: Answer,
): Answer {
  if (answer.ahead.length === 0) return answer
  const ahead = answer.ahead.map((entry) => {
    if (allowsKey(rights, 'read', entry.key)) return entry
    const { value: _, ...first } = entry.first
    return { ...entry, first }
  })
  return { ...answer, ahead }
}

/**
 * A notice of another's lease as it is shown. The watcher had the right to all keys of the lease
 * when it began to watch, but the lease may have claimed others since.
 */
export function shownNotice(
  store: LeaseStore,
  who: Principal,
  { lease, hidesReason }: Passed,
  notice: Notice,
): Shown {
  const maySee = ({ key }: { readonly key: Key }) => allowsKey(who.rights, 'watch', key)
  if (notice.type === 'standing') return { ...notice, claims: notice.claims.filter(maySee) }
  if (notice.type === 'removed') return maySee(notice) ? notice : undefined
  if (notice.type === 'gone' && hidesReason) return { ...notice, end: withoutReason(notice.end) }
  if (notice.type !== 'holds') return notice
  return store.read({ lease }).then(({ claims }) => {
    const own = claims.filter(({ token }) => token === notice.token)
    return own.every(maySee) ? notice : undefined
  })
}
