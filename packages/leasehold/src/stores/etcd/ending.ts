import type { End, Key, Revoked } from '../../port/index.ts'
import { nested } from './api.ts'
import { isThere, lineEnd, nameIn } from './changing.ts'
import type { Context } from './context.ts'
import { afterChange } from './faults.ts'
import type { KnownLease } from './known.ts'
import { type StoredClaim, storedClaim, writeEnd, writeLease } from './layout.ts'
import type { Compare, Op } from './messages.ts'
import { carryOut, emptyAnswer, type Remembered, rememberedIn } from './remembering.ts'
import { bytesOfAll } from './sizes.ts'

/** So much is done to claims at once: etcd takes 1.5 MiB, and the end of the lease itself is small. */
const ENDS_BYTES = 1_500_000

/**
 * Ends a lease in one revision with all its claims. Its record is marked first, so that no claim is
 * added while its claims are found; whoever meets the mark without the end carries on. Answers
 * with nothing where the lease has changed meanwhile.
 */
export async function endLease(
  context: Context,
  lease: KnownLease,
  end: End,
  request: string | undefined,
): Promise<Revoked | undefined> {
  if (lease.record.ending === undefined) {
    const key = context.layout.lease(lease.id)
    const value = writeLease({ ...lease.record, ending: end })
    const put: Op = { do: 'put', key, value, lease: 'keep' }
    const txn = { compare: [isUnchanged(context, lease)], success: [put], failure: [] }
    const marked = await context.api.txn(txn, true)
    if (!marked.succeeded) return undefined
    lease.changed = marked.revision
    lease.record = { ...lease.record, ending: end }
  }
  return afterChange(endMarked(context, lease, end, request))
}

async function endMarked(
  context: Context,
  lease: KnownLease,
  end: End,
  request: string | undefined,
): Promise<Revoked | undefined> {
  const { api, layout } = context
  const claims = (await claimsOf(context, lease)).sort((one, other) => other.token - one.token)
  const noted = fits(context, claims, end) ? end : { reason: end.reason }
  const parts = inParts(context, claims, noted)
  const last = parts.pop() ?? []
  for (const part of parts) if (!(await endPart(context, lease, part, noted))) return undefined
  const value = JSON.stringify(writeEnd(end))
  const answer = await context.ends.use((ends) =>
    carryOut(context, {
      compare: [isUnchanged(context, lease)],
      success: nested([
        ...endOps(context, last, noted, ends),
        { do: 'delete', key: layout.lease(lease.id) },
        { do: 'put', key: layout.ended(lease.id), value, lease: ends },
      ]),
      failure: [],
      request,
      entry: { did: 'revoke', leases: 1, claims: claims.length, more: false },
    }),
  )
  if (!answer.succeeded) {
    const remembered = rememberedIn(request, answer)
    return remembered && revokedBefore(remembered)
  }
  lease.claims.clear()
  api.dropLease(lease.number)
  const { life } = lease.record
  if (life !== undefined) api.dropLease(life.lease)
  return { revision: answer.revision, leases: 1, claims: claims.length, more: false }
}

/** Carries on where somebody has marked a lease and not ended it. */
export async function finishEnding(context: Context, lease: KnownLease): Promise<void> {
  await endLease(context, lease, lease.record.ending!, undefined)
}

function isUnchanged({ layout }: Context, { id, changed }: KnownLease): Compare {
  return { key: layout.lease(id), of: 'changed', is: 'equal', revision: changed }
}

function fits(context: Context, claims: readonly StoredClaim[], end: End): boolean {
  return bytesOfAll(endOps(context, claims, end, 0)) <= ENDS_BYTES
}

/**
 * The claims of a lease, all together; or where their names are more than etcd takes at once, in as
 * many parts as need be. A lease must be able to end, even if that cannot be in one revision.
 */
function inParts(context: Context, claims: readonly StoredClaim[], end: End): StoredClaim[][] {
  if (fits(context, claims, end)) return [[...claims]]
  const parts: StoredClaim[][] = []
  let left = 0
  for (const claim of claims) {
    const bytes = bytesOfAll(endOps(context, [claim], end, 0))
    if (bytes > left) {
      parts.push([])
      left = ENDS_BYTES
    }
    parts.at(-1)!.push(claim)
    left -= bytes
  }
  return parts
}

/** Whether it was done: where it was done before, or the lease has changed, all must be read again. */
async function endPart(
  context: Context,
  lease: KnownLease,
  claims: readonly StoredClaim[],
  end: End,
): Promise<boolean> {
  const compare = [isUnchanged(context, lease), isThere(context, claims[0]!)]
  const answer = await context.ends.use((ends) => {
    const success = nested(endOps(context, claims, end, ends))
    return context.api.txn({ compare, success, failure: [] }, true)
  })
  return answer.succeeded
}

/** Claims that go, each key's note of how they ended. */
export function endOps(
  context: Context,
  claims: readonly StoredClaim[],
  end: End,
  ends: number,
): readonly Op[] {
  return [
    ...claims.map((claim): Op => ({ do: 'delete', key: nameIn(context, claim) })),
    ...[...groupByKey(claims)].map(([key, each]): Op => lineEnd(context, key, each, end, ends)),
  ]
}

/** The names of all claims of a lease, made here or elsewhere: etcd knows what is tied to it. */
export async function claimNames({ api, layout }: Context, lease: KnownLease): Promise<string[]> {
  const tied = await api.timeToLive(lease.number, true)
  const names = new Set([...(tied?.keys ?? []), ...lease.claims.keys()])
  return [...names].filter((name) => layout.isClaim(name)).sort()
}

async function claimsOf(context: Context, lease: KnownLease): Promise<StoredClaim[]> {
  const { api, layout } = context
  const names = await claimNames(context, lease)
  if (names.length === 0) return []
  const { results } = await api.read(names.map((name) => layout.get(name)))
  return results.flatMap(({ kvs }) => kvs.map((kv) => storedClaim(layout, kv)))
}

export function revokedBefore(remembered: Remembered): Revoked {
  const { entry, revision } = remembered
  if (entry.did === 'revoke') {
    const { leases, claims, more } = entry
    return { revision, leases, claims, more }
  }
  return emptyAnswer(remembered) as Revoked
}

export function groupByKey(claims: readonly StoredClaim[]): Map<Key, StoredClaim[]> {
  const groups = new Map<Key, StoredClaim[]>()
  for (const claim of claims) groups.set(claim.key, [...(groups.get(claim.key) ?? []), claim])
  return groups
}
