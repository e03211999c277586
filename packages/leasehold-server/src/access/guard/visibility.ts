import type { Ahead, Key, LeaseStore, Notice } from 'leasehold/port'
import type { Principal } from '../identity/principal.ts'
import { allowsKey } from '../rights.ts'
import type { Shown } from './guarded-watch.ts'
import { type AllowedLease, withoutReason } from './lease-access.ts'

/** Removes the values of claims ahead that the principal may not read. */
export function visibleAnswer<Answer extends { readonly ahead: readonly Ahead[] }>(
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
 * The visible part of a notice about another principal's lease. The watcher had the right to all its
 * keys when the watch was opened, but the lease may have claimed others since.
 */
export function visibleNotice(
  store: LeaseStore,
  principal: Principal,
  { lease, hidesReason }: AllowedLease,
  notice: Notice,
): Shown {
  const maySee = ({ key }: { readonly key: Key }) => allowsKey(principal.rights, 'watch', key)
  if (notice.type === 'standing') return { ...notice, claims: notice.claims.filter(maySee) }
  if (notice.type === 'removed') return maySee(notice) ? notice : undefined
  if (notice.type === 'gone' && hidesReason) return { ...notice, end: withoutReason(notice.end) }
  if (notice.type !== 'holds') return notice
  return store.read({ lease }).then(({ claims }) => {
    const own = claims.filter(({ token }) => token === notice.token)
    return own.every(maySee) ? notice : undefined
  })
}
