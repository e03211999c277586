import type { Key, Leasehold, LockKey } from 'leasehold'
import { type Claim, type LeaseStore, show } from 'leasehold/port'
import { isoTime, noteOf, type Party, partyOf } from './hold-note.ts'
import { claimsAhead } from './noted-holds.ts'

/** Keys whose queue is read to say who is ahead. */
const KEYS_MAX = 16
const SHOWN_MAX = 8

/** Somebody who is ahead in the queue of a key. */
export interface AheadParty extends Party {
  readonly key: Key
  /** Whether it holds the key, or waits for it too. */
  readonly state: 'holds' | 'waits'
  /** The handle, if the hold belongs to this connection. */
  readonly yours?: string | undefined
}

export interface Ahead {
  /** How many are ahead. */
  readonly position: number
  /** The first of them. */
  readonly ahead: readonly AheadParty[]
}

/**
 * Who is before the claims with this ref, or everybody if they are not queued. Each hold once. `own`
 * has the handles of this connection by their refs.
 */
export async function partiesAhead(
  store: LeaseStore,
  claims: readonly LockKey[],
  ref: string,
  own: ReadonlyMap<string, string>,
): Promise<Ahead> {
  // Queues of exclusive claims say most about who is ahead.
  const exclusiveFirst = [...claims].sort((a, b) => rank(a) - rank(b)).slice(0, KEYS_MAX)
  const queues = await Promise.all(
    exclusiveFirst.map(async ({ key, mode = 'exclusive' }) => {
      const { claims: queue } = await store.read({ key })
      return claimsAhead(queue, ref, mode)
    }),
  )
  const found = new Map<string, AheadParty>()
  for (const claim of queues.flat()) {
    const other = noteOf(claim)?.ref
    const id = other ?? `${claim.lease}/${claim.token}`
    if (found.has(id)) continue
    const yours = other === undefined ? undefined : own.get(other)
    found.set(id, { ...aheadParty(claim), ...(yours && { yours }) })
  }
  return { position: found.size, ahead: [...found.values()].slice(0, SHOWN_MAX) }
}

/** A claim that is ahead. */
export function aheadParty(claim: Claim): AheadParty {
  const isHolding = claim.heldSince !== undefined
  return { key: claim.key, ...partyOf(claim), state: isHolding ? 'holds' : 'waits' }
}

/** Who has the resources of a pool, and how many waiters are served before this one. */
export async function aheadInPool(
  leasehold: Leasehold,
  pool: string,
  waiter: { readonly tenant: string; readonly kind: string },
): Promise<Ahead> {
  const { resources, queue } = await leasehold.pool(pool).status()
  const ahead = resources
    .flatMap(({ name, permits }) => permits.map((permit) => ({ name, permit })))
    .slice(0, SHOWN_MAX)
    .map(({ name, permit: { tenant, kind, token, since } }): AheadParty => {
      const party = { agent: tenant, purpose: kind, for: [name], mode: 'exclusive' as const }
      const key = `pool/${pool}/r/${name}`
      return { key, ...party, since: isoTime(since), until: null, token, state: 'holds' }
    })
  const own = queue.findIndex((it) => it.tenant === waiter.tenant && it.kind === waiter.kind)
  return { position: own < 0 ? queue.length : own, ahead }
}

export function aheadText(ahead: readonly AheadParty[]): string {
  if (ahead.length === 0) return 'Nobody is ahead any more'
  return ahead
    .map(({ agent, key, purpose, since, until, state }) => {
      const does = state === 'holds' ? 'has' : 'waits for'
      return `${agent} ${does} ${key} since ${since}${until === null ? '' : `, until ${until} at the latest,`} for ${show(purpose)}`
    })
    .join('; ')
}

function rank({ mode }: LockKey): number {
  return mode === 'shared' ? 1 : 0
}
