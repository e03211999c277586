import {
  isLeaseholdError,
  LeaseholdError,
  type LeaseStore,
  type Random,
  show,
  type Time,
} from 'leasehold/port'
import { DEFAULT_CEILINGS } from './ceilings.ts'
import { isoTime } from './hold-note.ts'
import type { QueuedClaim } from './noted-holds.ts'

/**
 * Requests to give a hold back. Each is a key under the ref of the hold, which its holder reads with
 * every answer. It ends by itself, so that an answered or forgotten one leaves nothing behind.
 */
export const ASKS_PREFIX = 'agents/asks/'
/** A holder that calls nothing for longer loses the hold. */
const ASK_TTL_MS = DEFAULT_CEILINGS.idle
/** Requests for one hold: agents that ask again and again must not flood its holder. */
const ASKS_PER_HOLD = 10
/** Holds whose requests are read one by one; for more, all requests are read. */
const HOLDS_READ_ALONE = 8
const ASKS_READ = 1000

export interface Ask {
  /** The hold that is asked for. */
  readonly ref: string
  readonly by: string
  readonly why: string
  readonly at: Time
}

/**
 * Asks, unless the same was asked before. The lease is not renewed, and is not tied: the request
 * outlives a break of the connection.
 */
export async function askBack(
  store: LeaseStore,
  random: Random,
  { ref, by, why }: Omit<Ask, 'at'>,
): Promise<void> {
  const asked = await asksUnder(store, `${ASKS_PREFIX}${ref}/`)
  if (asked.some((ask) => ask.by === by && ask.why === why)) return
  if (asked.length >= ASKS_PER_HOLD) {
    throw new LeaseholdError(
      'limit-exceeded',
      `its holder was asked ${asked.length} times already, the maximum: call acquire and wait, or do other work`,
    )
  }
  const key = `${ASKS_PREFIX}${ref}/${random.id().slice(0, 8)}`
  const value = JSON.stringify({ by, why })
  const ttl = Math.min(ASK_TTL_MS, store.guarantees.ttl.max)
  await store.grant({ holder: by, ttl, claims: [{ key, value }] })
}

/**
 * The requests for these holds, the oldest first. None if they cannot be read: the answer that they
 * come with must not be lost, because it may name a new hold.
 */
export async function asksFor(store: LeaseStore, refs: readonly string[]): Promise<Ask[]> {
  if (refs.length === 0) return []
  const prefixes =
    refs.length > HOLDS_READ_ALONE ? [ASKS_PREFIX] : refs.map((ref) => `${ASKS_PREFIX}${ref}/`)
  try {
    const asks = await Promise.all(prefixes.map((prefix) => asksUnder(store, prefix)))
    return asks
      .flat()
      .filter(({ ref }) => refs.includes(ref))
      .sort((a, b) => a.at - b.at)
  } catch (error) {
    if (isLeaseholdError(error)) return []
    throw error
  }
}

/** Who may not read them finds none; everything else works. */
async function asksUnder(store: LeaseStore, prefix: string): Promise<Ask[]> {
  const { keys } = await store.read({ prefix, limit: ASKS_READ }).catch((error) => {
    if (isLeaseholdError(error, 'forbidden')) return { keys: [] }
    throw error
  })
  return keys.flatMap(({ claims: [claim] }) => (claim === undefined ? [] : [askOf(claim)]))
}

/** The request that a claim below `ASKS_PREFIX` is. */
export function askOf({
  key,
  holder,
  value,
  claimedAt,
}: Pick<QueuedClaim, 'key' | 'holder' | 'value' | 'claimedAt'>): Ask {
  const ref = key.slice(ASKS_PREFIX.length).split('/')[0]!
  return { ref, by: holder, why: '', ...saidIn(value), at: claimedAt }
}

/** Any program may write there. */
function saidIn(value: string | undefined): Partial<Pick<Ask, 'by' | 'why'>> {
  try {
    const { by, why } = JSON.parse(value ?? '{}') as Record<string, unknown>
    return {
      ...(typeof by === 'string' && { by }),
      ...(typeof why === 'string' && { why }),
    }
  } catch {
    return {}
  }
}

/** What the holder reads. */
export function askText({ by, why, at }: Ask, things: readonly string[]): string {
  return `${by} asked at ${isoTime(at)} for ${things.join(', ')} back: ${show(why)}. Bring your work to a safe end soon, then release this hold`
}
