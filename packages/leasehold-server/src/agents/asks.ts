import { isLeaseholdError, type LeaseStore, type Random, show, type Time } from 'leasehold/port'
import { isoTime } from './hold-note.ts'
import type { QueuedClaim } from './noted-holds.ts'

/**
 * Requests to give a hold back. Each is a key under the ref of the hold, which its holder reads with
 * every answer. It ends by itself, so that an answered or forgotten one leaves nothing behind.
 */
export const ASKS_PREFIX = 'agents/asks/'
const ASK_TTL_MS = 15 * 60_000
const ASKS_READ = 1000

export interface Ask {
  /** The hold that is asked for. */
  readonly ref: string
  readonly by: string
  readonly why: string
  readonly at: Time
}

/** Its lease is not renewed, and is not tied: the request outlives a break of the connection. */
export async function askBack(
  store: LeaseStore,
  random: Random,
  { ref, by, why }: Omit<Ask, 'at'>,
): Promise<void> {
  const key = `${ASKS_PREFIX}${ref}/${random.id().slice(0, 8)}`
  const value = JSON.stringify({ by, why })
  const ttl = Math.min(ASK_TTL_MS, store.guarantees.ttl.max)
  await store.grant({ holder: by, ttl, claims: [{ key, value }] })
}

/** The requests for these holds, the oldest first. */
export async function asksFor(store: LeaseStore, refs: ReadonlySet<string>): Promise<Ask[]> {
  const { keys } = await store.read({ prefix: ASKS_PREFIX, limit: ASKS_READ }).catch((error) => {
    // Who may not read them gets none; everything else works.
    if (isLeaseholdError(error, 'forbidden')) return { keys: [] }
    throw error
  })
  return keys
    .flatMap(({ claims: [claim] }) => (claim === undefined ? [] : [askOf(claim)]))
    .filter(({ ref }) => refs.has(ref))
    .sort((a, b) => a.at - b.at)
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
