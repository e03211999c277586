import type { Key, Leasehold, LockKey } from 'leasehold'
import { type LeaseStore, show } from 'leasehold/port'
import { isoTime, noteOf, type Party, partyOf } from './hold-note.ts'
import { claimsAhead } from './noted-holds.ts'

/** Keys whose queue is read to say who is ahead. */
const KEYS_MAX = 16
const SHOWN_MAX = 8

/** Somebody who is ahead in the queue of a key. */
export interface AheadParty extends Party {
  readonly key: Key
  /** The handle, if the hold belongs to this connection. */
  readonly yours?: string | undefined
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
): Promise<readonly AheadParty[]> {
  const found = new Map<string, AheadParty>()
  // Queues of exclusive claims say most about who is ahead.
  const exclusiveFirst = [...claims].sort((a, b) => rank(a) - rank(b)).slice(0, KEYS_MAX)
  for (const { key, mode = 'exclusive' } of exclusiveFirst) {
    const { claims: queue } = await store.read({ key })
    for (const claim of claimsAhead(queue, ref, mode)) {
      const other = noteOf(claim)?.ref
      const id = other ?? `${claim.lease}/${claim.token}`
      if (found.has(id)) continue
      const yours = other === undefined ? undefined : own.get(other)
      found.set(id, { key, ...partyOf(claim), ...(yours && { yours }) })
    }
  }
  return [...found.values()].slice(0, SHOWN_MAX)
}

/** Who has the resources of a pool. */
export async function poolHolders(
  leasehold: Leasehold,
  pool: string,
): Promise<readonly AheadParty[]> {
  const { resources } = await leasehold.pool(pool).status()
  return resources
    .flatMap(({ name, permits }) => permits.map((permit) => ({ name, permit })))
    .slice(0, SHOWN_MAX)
    .map(({ name, permit: { tenant, kind, token, since } }) => ({
      key: `${pool}/${name}`,
      agent: tenant,
      purpose: kind,
      for: [name],
      mode: 'exclusive',
      since: isoTime(since),
      until: null,
      token,
    }))
}

export function aheadText(ahead: readonly AheadParty[]): string {
  if (ahead.length === 0) return 'Nobody is ahead any more'
  return ahead
    .map(
      ({ agent, key, purpose, since, until }) =>
        `${agent} has ${key} since ${since}${until === null ? '' : `, until ${until} at the latest,`} for ${show(purpose)}`,
    )
    .join('; ')
}

function rank({ mode }: LockKey): number {
  return mode === 'shared' ? 1 : 0
}
