import {
  type End,
  type Key,
  LeaseholdError,
  type Revoked,
  type RevokeRequest,
  type RevokeTarget,
} from '../../port/index.ts'
import { refused } from './answers.ts'
import { nested } from './api.ts'
import { isThere } from './changing.ts'
import type { Context } from './context.ts'
import { endLease, endOps, groupByKey, revokedBefore } from './ending.ts'
import { noLease } from './faults.ts'
import type { KnownLease } from './known.ts'
import { type StoredClaim, storedClaim, writeEnd, writeLease } from './layout.ts'
import type { Op } from './messages.ts'
import { carryOut, keep, rememberedIn } from './remembering.ts'

export async function revoke(context: Context, request: RevokeRequest): Promise<Revoked> {
  const { target } = request
  if ('prefix' in target || 'key' in target) return removeClaims(context, request, target)
  const id = 'lease' in target ? target.lease : target.parent
  for (;;) {
    const lease = await context.known.look(id)
    if (!('id' in lease)) {
      const refusal = noLease(id, lease.end)
      const kept = await keep(context, request.request, refused(refusal))
      if ('entry' in kept) return revokedBefore(kept)
      throw LeaseholdError.from(refusal)
    }
    // No lease is under another here.
    if ('parent' in target) return nothing(context, request)
    const done = request.after
      ? await breakLater(context, lease, request, request.after)
      : await endLease(context, lease, byForce(request), request.request)
    if (done) return done
  }
}

function byForce({ by, why }: RevokeRequest): End {
  return { reason: 'revoked', by, why }
}

/** Gives a lease's life an end. Answers with nothing where the lease has changed meanwhile. */
async function breakLater(
  context: Context,
  lease: KnownLease,
  request: RevokeRequest,
  after: number,
): Promise<Revoked | undefined> {
  const { api, layout, clock, news } = context
  const { record } = lease
  if (record.life !== undefined) {
    const left = await api.timeToLive(record.life.lease, false)
    // etcd tells whole seconds: the life may end up to a second later than it says.
    if (left !== undefined && left.remaining * 1000 < after) return nothing(context, request)
  }
  const life = await api.grantLease(after)
  const endOfLife = clock.now() + after
  const end: End = { reason: 'broken', by: request.by, why: request.why }
  const value = writeLease({ ...record, life: { lease: life, endOfLife, end } })
  const key = layout.lease(lease.id)
  const answer = await carryOut(context, {
    compare: [{ key, of: 'changed', is: 'equal', revision: lease.changed }],
    success: [
      { do: 'put', key, value, lease: 'keep' },
      { do: 'put', key: layout.life(lease.id), value: '', lease: life },
    ],
    failure: [],
    request: request.request,
    entry: { did: 'revoke', leases: 1, claims: 0, more: false },
  })
  if (!answer.succeeded) {
    api.dropLease(life)
    const remembered = rememberedIn(request.request, answer)
    return remembered && revokedBefore(remembered)
  }
  if (record.life !== undefined) api.dropLease(record.life.lease)
  const created = lease.born
  news.limited(
    context.known.learn({ key, value, created, changed: answer.revision }),
    clock.now() + after,
  )
  return { revision: answer.revision, leases: 1, claims: 0, more: false }
}

/** Removes claims on keys; their leases live on, and are told. */
async function removeClaims(
  context: Context,
  request: RevokeRequest,
  target: Extract<RevokeTarget, { prefix: string } | { key: Key }>,
): Promise<Revoked> {
  const most = Math.min(REMOVED_MOST, context.limits.page)
  for (;;) {
    const found = await victims(context, target, most + 1)
    const more = found.length > most
    const claims = found.slice(0, most)
    if (claims.length === 0) return nothing(context, request)
    const end = byForce(request)
    const answer = await context.ends.use((ends) =>
      carryOut(context, {
        compare: claims.map((claim) => isThere(context, claim)),
        success: nested([
          ...endOps(context, claims, end, ends),
          ...signals(context, claims, end, ends),
        ]),
        failure: [],
        request: request.request,
        entry: { did: 'revoke', leases: 0, claims: claims.length, more },
      }),
    )
    if (answer.succeeded) {
      for (const claim of claims) context.known.released(claim)
      return { revision: answer.revision, leases: 0, claims: claims.length, more }
    }
    const remembered = rememberedIn(request.request, answer)
    if (remembered) return revokedBefore(remembered)
  }
}

/** So many claims one transaction removes at most: each is compared, so that none is mistaken. */
const REMOVED_MOST = 100

/** The claims that are meant, in the order of their keys and tokens, so many at most. */
async function victims(
  { api, layout }: Context,
  target: Extract<RevokeTarget, { prefix: string } | { key: Key }>,
  most: number,
): Promise<StoredClaim[]> {
  if ('key' in target) {
    const { key, token } = target
    const line = { ...layout.line(key), byCreation: true, createdFrom: token, createdTo: token }
    const { results } = await api.read([{ do: 'range', ...line, limit: most }])
    return results[0]!.kvs.map((kv) => storedClaim(layout, kv))
  }
  const claims: StoredClaim[] = []
  const { key, end } = layout.under(target.prefix)
  for (let from: string | undefined = key; from !== undefined; ) {
    const { results } = await api.read([{ do: 'range', key: from, end, limit: 4 * most }])
    const { kvs, more } = results[0]!
    // Beside the claims there is a note on each key, also on those that nobody claims any more.
    for (const kv of kvs) if (layout.isClaim(kv.key)) claims.push(storedClaim(layout, kv))
    from = more && claims.length < most ? `${kvs.at(-1)!.key}\u0000` : undefined
  }
  // By name they come in the order of their keys, but not in that of their tokens.
  return [...groupByKey(claims.slice(0, most)).values()].flatMap((line) =>
    line.sort((one, other) => one.token - other.token),
  )
}

/** Tells the leases whose claims are taken, in the same revision. */
function signals(
  { layout }: Context,
  claims: readonly StoredClaim[],
  end: End,
  lease: number,
): Op[] {
  const byLease = new Map<string, [Key, number][]>()
  for (const { lease: id, key, token } of claims) {
    byLease.set(id, [...(byLease.get(id) ?? []), [key, token]])
  }
  return [...byLease].map(([id, taken]): Op => {
    const value = JSON.stringify([writeEnd(end), taken])
    return { do: 'put', key: layout.signal(id), value, lease }
  })
}

async function nothing(context: Context, request: RevokeRequest): Promise<Revoked> {
  const { revision } = await context.api.read([context.layout.get(context.layout.leases)])
  const answer = { revision, leases: 0, claims: 0, more: false }
  const kept = await keep(context, request.request, answer)
  return 'entry' in kept ? revokedBefore(kept) : kept
}
