import { type End, holders, type Key, type LeaseId, type Token } from '../../port/index.ts'
import type { Context, Place } from './context.ts'
import { claimNames } from './ending.ts'
import type { KnownLease } from './known.ts'
import { parseClaimName, parseLeaseId, type StoredClaim, storedClaim } from './layout.ts'
import { nameOf } from './lines.ts'

/** How all claims of a lease stood at a revision. */
export interface Standing {
  readonly revision: number
  readonly known: KnownLease
  readonly claims: readonly StoredClaim[]
  readonly places: ReadonlyMap<Token, readonly Place[]>
}

/**
 * Reads how a lease's claims stand, or how it ended. The revision comes first and the names of the
 * claims after it, so that none is missing that was there by then.
 */
export async function readStanding(
  context: Context,
  lease: LeaseId,
): Promise<Standing | { readonly end: End | undefined }> {
  const { known, api, layout } = context
  const { id } = parseLeaseId(lease) ?? { id: '' }
  const first = await api.read([layout.get(layout.lease(id)), layout.get(layout.ended(id))])
  const { revision } = first
  const found = known.judge(lease, first.results[0]!.kvs[0], first.results[1]!.kvs[0])
  if (!('id' in found)) return found
  const names = await claimNames(context, found)
  const { results } = await api.read(
    names.flatMap((name) => [
      layout.get(name, revision),
      layout.lineNames(layout.parse(name).key, undefined, revision),
    ]),
  )
  const places = new Map<Token, Place[]>()
  const claims: StoredClaim[] = []
  for (const [at, name] of names.entries()) {
    const [own] = results[2 * at]!.kvs
    if (own === undefined) continue
    const claim = storedClaim(layout, own)
    const place = placeIn(claim.key, name, results[2 * at + 1]!.kvs)!
    claims.push(claim)
    places.set(claim.token, [...(places.get(claim.token) ?? []), place])
  }
  return { revision, known: found, claims, places }
}

/** Where a claim stands in a line; `undefined` where it is not there. */
export function placeIn(
  key: Key,
  name: string,
  line: readonly { readonly key: string }[],
): Place | undefined {
  const names = line.map((each) => each.key)
  const index = names.indexOf(name)
  if (index < 0) return undefined
  const standings = names.map((each) => parseClaimName(nameOf(each)))
  return { key, name, before: names.slice(0, index), holds: index < holders(standings) }
}
