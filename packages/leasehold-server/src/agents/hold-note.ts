import type { Claim } from 'leasehold/port'

/**
 * What every claim of an agent says about itself in its value, so that others can read who holds a
 * key, what for and for how long. It never contains the handle, which only its owner may use.
 */
export interface HoldNote {
  /** Names the hold to others, in `ask_back`. */
  readonly ref: string
  readonly agent: string
  readonly purpose: string
  /** What the agent asked for, as it named it. */
  readonly for: readonly string[]
  /** The longest time that it may hold, in milliseconds. */
  readonly max?: number | undefined
}

/** How many of the things asked for a note lists: every claim of the hold has a copy. */
const SHOWN_MAX = 20

export function noteText(note: HoldNote): string {
  return JSON.stringify({ ...note, for: note.for.slice(0, SHOWN_MAX) })
}

/** The note of a claim. Any program may hold a key, so a claim may have none. */
export function noteOf({ value }: Pick<Claim, 'value'>): HoldNote | undefined {
  if (value === undefined || !value.startsWith('{"ref":')) return undefined
  try {
    const { ref, agent, purpose, for: things, max } = JSON.parse(value) as Record<string, unknown>
    if (typeof ref !== 'string' || typeof agent !== 'string') return undefined
    return {
      ref,
      agent,
      purpose: typeof purpose === 'string' ? purpose : '',
      for: Array.isArray(things) ? things.filter((it) => typeof it === 'string') : [],
      max: typeof max === 'number' ? max : undefined,
    }
  } catch {
    return undefined
  }
}

/** A holder or waiter, as an agent reads it. */
export interface Party {
  readonly agent: string
  readonly purpose: string
  readonly for: readonly string[]
  readonly mode: 'exclusive' | 'shared'
  /** ISO times. `since`: it holds, or waits, since then. `until`: the latest end of its hold, if it has one. */
  readonly since: string
  readonly until: string | null
  readonly token: number
}

export function partyOf(claim: Claim): Party {
  const note = noteOf(claim)
  const since = claim.heldSince ?? claim.claimedAt
  const isHolding = claim.heldSince !== undefined
  const latest = isHolding && note?.max !== undefined ? since + note.max : Infinity
  return {
    agent: note?.agent ?? claim.holder,
    purpose: note?.purpose ?? claim.value ?? '',
    for: note?.for ?? [claim.key],
    mode: claim.mode,
    since: isoTime(since),
    until: latest === Infinity ? null : isoTime(latest),
    token: claim.token,
  }
}

export function isoTime(time: number): string {
  return new Date(time).toISOString()
}
