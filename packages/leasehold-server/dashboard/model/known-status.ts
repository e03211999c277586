import type { InstanceView, StatusChange } from './services.ts'

/** A time in which it is known how an instance was. */
export interface KnownStatus extends StatusChange {
  readonly from: number
  readonly to: number
}

/**
 * What is known of how an instance was, the earliest first, up to now: by the changes that were
 * heard of, and by how it is, which is known since `seen`. What lies before is not known.
 */
export function stripOf(
  changes: readonly StatusChange[],
  { since, status, note }: Pick<InstanceView, 'since' | 'status' | 'note'>,
  seen: number,
  now: number,
): readonly KnownStatus[] {
  // It is registered since then: to seem gone is to have a registration that was not heard of.
  const heard = changes.filter((change) => change.status !== 'gone' || change.at <= since)
  const last = heard.at(-1)
  const isCurrent = last?.status === status && last.note === note
  const known = isCurrent
    ? heard
    : [...heard, { at: Math.max(seen, last?.at ?? seen), status, note }]
  return known.map((change, at) => ({
    ...change,
    from: change.at,
    to: known[at + 1]?.at ?? Math.max(now, change.at),
  }))
}
