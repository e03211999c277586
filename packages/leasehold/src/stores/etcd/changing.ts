import {
  type Changed,
  type End,
  type Key,
  LeaseholdError,
  type LeaseId,
  type Refusal,
  type ReleaseRequest,
  type RequestId,
  type Token,
  type UpdateRequest,
} from '../../port/index.ts'
import { refused } from './answers.ts'
import type { Context } from './context.ts'
import { noClaim, noLease } from './faults.ts'
import {
  type EndedClaim,
  parseLeaseId,
  type StoredClaim,
  storedClaim,
  writeClaim,
  writeLineEnd,
} from './layout.ts'
import type { Compare, KeyValue, Op, PutOp, RangeOp, Result } from './messages.ts'
import { carryOut, emptyAnswer, keep, type Remembered, rememberedIn } from './remembering.ts'

const RELEASED: End = { reason: 'released' }

interface Named {
  readonly lease: LeaseId
  readonly keys: readonly Key[]
  readonly token: Token
  readonly request: RequestId | undefined
}

export async function release(context: Context, request: ReleaseRequest): Promise<Changed> {
  const { known, news } = context
  const named = { ...request, request: request.request }
  const { changed, claims } = await context.ends.use((ends) =>
    changeClaims(context, named, (claims) => [
      ...claims.map((claim): Op => ({ do: 'delete', key: nameIn(context, claim) })),
      ...claims.map((claim) => lineEnd(context, claim.key, [claim], RELEASED, ends)),
    ]),
  )
  for (const each of claims) known.released(each)
  news.released(request.lease, request.token, request.keys)
  return changed
}

export async function update(context: Context, request: UpdateRequest): Promise<Changed> {
  const { lease, key, token, value } = request
  const named = { lease, keys: [key], token, request: request.request }
  const at = context.clock.now()
  const change = ([claim]: readonly StoredClaim[]): Op[] => {
    const text = writeClaim({ ...claim!, at, value })
    return [{ do: 'put', key: nameIn(context, claim!), value: text, lease: 'keep' }]
  }
  return (await changeClaims(context, named, change)).changed
}

/** Changes claims if all of them are there. */
async function changeClaims(
  context: Context,
  named: Named,
  change: (claims: readonly StoredClaim[]) => Op[],
): Promise<{ changed: Changed; claims: readonly StoredClaim[] }> {
  const { request } = named
  const claims = await findClaims(context, named)
  if (claims !== undefined) {
    const answer = await carryOut(context, {
      compare: claims.map((claim) => isThere(context, claim)),
      success: change(claims),
      failure: whyNotOps(context, named),
      request,
      entry: { did: 'change' },
      joint: true,
    })
    if (answer.succeeded) return { changed: { revision: answer.revision }, claims }
    const remembered = rememberedIn(request, answer)
    if (remembered) return { changed: changedBefore(remembered), claims: [] }
    return refuse(context, named, answer.results.slice(1))
  }
  return refuse(context, named, (await context.api.read(whyNotOps(context, named))).results)
}

/** Why the claims are not there, which becomes the answer unless there was one before. */
async function refuse(
  context: Context,
  named: Named,
  results: readonly Result[],
): Promise<{ changed: Changed; claims: readonly StoredClaim[] }> {
  const refusal = whyNot(context, named, results)
  const kept = await keep(context, named.request, refused(refusal))
  if ('entry' in kept) return { changed: changedBefore(kept), claims: [] }
  throw LeaseholdError.from(refusal)
}

function changedBefore(remembered: Remembered): Changed {
  emptyAnswer(remembered)
  return { revision: remembered.revision }
}

/** The claims that are meant, as known or as they were read; `undefined` where one is not there. */
async function findClaims(
  context: Context,
  { lease, keys, token }: Named,
): Promise<readonly StoredClaim[] | undefined> {
  const { layout, known, api } = context
  const missing = keys.filter((key) => known.claim(key, token) === undefined)
  const read = new Map<Key, StoredClaim>()
  if (missing.length > 0) {
    const ranges = missing.map((key): RangeOp => {
      return { do: 'range', ...layout.line(key), createdFrom: token, createdTo: token }
    })
    const { results } = await api.read(ranges)
    for (const kv of results.flatMap(({ kvs }) => kvs)) {
      const claim = storedClaim(layout, kv)
      if (claim.leaseId === lease) read.set(claim.key, claim)
    }
  }
  const found = keys.map((key) => known.claim(key, token) ?? read.get(key))
  return found.every((claim) => claim?.leaseId === lease) ? (found as StoredClaim[]) : undefined
}

export function isThere(context: Context, claim: StoredClaim): Compare {
  return { key: nameIn(context, claim), of: 'created', is: 'equal', revision: claim.token }
}

export function nameIn({ layout }: Context, { key, name }: StoredClaim): string {
  return layout.claim(key, name)
}

/** What says why claims are not there: the lease, how it ended, and each key's line. */
function whyNotOps({ layout }: Context, { lease, keys }: Named): RangeOp[] {
  const id = parseLeaseId(lease)?.id ?? ''
  return [
    layout.get(layout.lease(id)),
    layout.get(layout.ended(id)),
    ...keys.map((key) => layout.lineNames(key)),
  ]
}

function whyNot(
  { known }: Context,
  { lease, keys, token }: Named,
  [record, ended, ...lines]: readonly Result[],
): Refusal {
  const found = known.judge(lease, record!.kvs[0], ended!.kvs[0])
  if (!('id' in found)) return noLease(lease, found.end)
  const isThis = ({ key, created }: KeyValue) => created === token && key.includes(`.${found.id}.`)
  const at = lines.findIndex(({ kvs }) => !kvs.some(isThis))
  return noClaim(lease, keys[Math.max(at, 0)]!, token, lines[Math.max(at, 0)]!.kvs[0]?.created ?? 0)
}

/** The note on a key that says how claims on it ended, put in the revision in which they do. */
export function lineEnd(
  { layout, clock }: Context,
  key: Key,
  claims: readonly StoredClaim[],
  end: End,
  lease: number,
  revision?: number,
): PutOp {
  const each = claims.map(({ token, leaseId, holder, claimedAt }): EndedClaim => {
    return { token, lease: leaseId, holder, claimedAt }
  })
  const value = writeLineEnd({ at: clock.now(), end, claims: each, revision })
  return { do: 'put', key: layout.lastEnd(key), value, lease }
}
