import type { End, Revoked, RevokeRequest, RevokeTarget } from '../../port/index.ts'
import type { Ledger } from '../ledger.ts'
import type { Refused } from '../outputs/index.ts'
import { noLease, refused } from '../refusals.ts'
import { NONE } from '../tables/index.ts'

/** Carries out a revoke whose arguments have been checked. */
export function revoke(ledger: Ledger, request: RevokeRequest, now: number): Revoked | Refused {
  const { target } = request
  if ('prefix' in target || 'key' in target) return removeClaims(ledger, request, now)
  const { leases } = ledger.tables
  const id = 'lease' in target ? target.lease : target.parent
  const slot = leases.find(id)
  if (slot === NONE) return refused(noLease(ledger, id))
  if ('lease' in target) return endOrCap(ledger, [slot], request, now, false)
  const children: number[] = []
  let child = leases.firstChild.get(slot)
  while (child !== NONE && children.length < ledger.limits.page) {
    children.push(child)
    child = leases.nextSibling.get(child)
  }
  return endOrCap(ledger, children, request, now, child !== NONE)
}

function endOrCap(
  ledger: Ledger,
  slots: readonly number[],
  request: RevokeRequest,
  now: number,
  more: boolean,
): Revoked {
  const { leases } = ledger.tables
  const { after } = request
  if (after) {
    const endOfLife = now + after
    const capped = slots.filter((slot) => leases.endOfLife.get(slot) > endOfLife)
    if (capped.length === 0) return nothing(ledger, more)
    const revision = ++ledger.revision
    const end: End = { reason: 'broken', by: request.by, why: request.why }
    for (const slot of capped) ledger.capLease(revision, slot, now, endOfLife, end)
    return { revision, leases: capped.length, claims: 0, more }
  }
  if (slots.length === 0) return nothing(ledger, more)
  const revision = ++ledger.revision
  const families = slots.flatMap((slot) => leases.withDescendants(slot))
  const claims = ledger.endLeases(revision, families, now, byForce(request))
  return { revision, leases: families.length, claims, more }
}

function removeClaims(ledger: Ledger, request: RevokeRequest, now: number): Revoked {
  const { claims, keys } = ledger.tables
  const victims = claimsOn(ledger, request.target)
  const more = victims.length > ledger.limits.page
  if (more) victims.pop()
  if (victims.length === 0) return nothing(ledger, more)
  const revision = ++ledger.revision
  const end = byForce(request)
  // All are removed before any waiting claim is promoted: see `Ledger.endLeases`.
  const touched = new Set(victims.map((claim) => claims.key.get(claim)))
  for (const claim of victims) ledger.releaseClaim(revision, claim, now, end)
  for (const key of touched) ledger.promoteWaiters(revision, key, now)
  keys.forgetIdle()
  return { revision, leases: 0, claims: victims.length, more }
}

/** The targeted claims, but at most one more than may be removed at once. */
function claimsOn(ledger: Ledger, target: RevokeTarget): number[] {
  const { keys } = ledger.tables
  const found: number[] = []
  if ('prefix' in target) {
    for (const key of keys.ordered.claimedUnder(target.prefix)) {
      collect(ledger, key, found)
      if (found.length > ledger.limits.page) break
    }
  } else if ('key' in target) {
    const key = keys.find(target.key)
    if (key === NONE) return found
    if (target.token === undefined) collect(ledger, key, found)
    else {
      const claim = ledger.queues.find(key, target.token)
      if (claim !== NONE) found.push(claim)
    }
  }
  return found
}

function collect(ledger: Ledger, key: number, found: number[]): void {
  const { claims, keys } = ledger.tables
  let claim = keys.first.get(key)
  while (claim !== NONE && found.length <= ledger.limits.page) {
    found.push(claim)
    claim = claims.nextOnKey.get(claim)
  }
}

function byForce(request: RevokeRequest): End {
  return { reason: 'revoked', by: request.by, why: request.why }
}

function nothing(ledger: Ledger, more: boolean): Revoked {
  return { revision: ledger.revision, leases: 0, claims: 0, more }
}
