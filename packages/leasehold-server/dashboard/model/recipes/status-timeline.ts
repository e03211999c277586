import type { InstanceView, StatusChange } from './services.ts'

/** A period in which the status of an instance is known. */
export interface StatusPeriod extends StatusChange {
  readonly from: number
  readonly to: number
}

/**
 * The known statuses of an instance, the earliest first: the received changes, and the current status
 * since `seen`. Earlier statuses are unknown.
 */
export function statusTimeline(
  changes: readonly StatusChange[],
  { since, status, note }: Pick<InstanceView, 'since' | 'status' | 'note'>,
  seen: number,
  now: number,
): readonly StatusPeriod[] {
  // It has been registered since then, so a later 'gone' means that a registration was missed.
  const received = changes.filter((change) => change.status !== 'gone' || change.at <= since)
  const last = received.at(-1)
  const isCurrent = last?.status === status && last.note === note
  const known = isCurrent
    ? received
    : [...received, { at: Math.max(seen, last?.at ?? seen), status, note }]
  return known.map((change, at) => ({
    ...change,
    from: change.at,
    to: known[at + 1]?.at ?? Math.max(now, change.at),
  }))
}
