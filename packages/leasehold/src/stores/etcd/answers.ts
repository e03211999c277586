import type { Busy, Refusal, Revoked } from '../../port/index.ts'

/**
 * What is kept of an answered request, put by the transaction that carried it out. What the
 * transaction has found cannot be in what it puts; it is read again as it was at that revision.
 */
export type Entry =
  | { readonly did: 'grant'; readonly id: string }
  | { readonly did: 'claim' }
  | { readonly did: 'change' }
  | ({ readonly did: 'revoke' } & Omit<Revoked, 'revision'>)
  /** A call that changed nothing, with all that it was answered. */
  | { readonly did: 'nothing'; readonly answer: Busy | Revoked | Refused }

export interface Refused {
  readonly outcome: 'refused'
  readonly refusal: Refusal
}

export function refused(refusal: Refusal): Refused {
  return { outcome: 'refused', refusal }
}

const CLAIMED = JSON.stringify({ did: 'claim' } satisfies Entry)
const CHANGED = JSON.stringify({ did: 'change' } satisfies Entry)

export function writeEntry(entry: Entry): string {
  if (entry.did === 'claim') return CLAIMED
  if (entry.did === 'change') return CHANGED
  return JSON.stringify(entry, (_, value) => (value === Infinity ? 'Infinity' : value))
}

export function readEntry(text: string): Entry {
  return JSON.parse(text, (name, value) =>
    name === 'until' && value === 'Infinity' ? Infinity : value,
  )
}
