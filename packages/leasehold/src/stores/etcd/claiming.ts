import {
  type Busy,
  type Claimed,
  type ClaimRequest,
  type ClaimSpec,
  type Granted,
  type GrantRequest,
  type Key,
  LeaseholdError,
  type LeaseId,
  type Refusal,
  type RequestId,
  type Token,
} from '../../port/index.ts'
import { type Entry, refused, writeEntry } from './answers.ts'
import { type Claimant, checkSize, type NewLease, type Put, putsFor } from './claim-puts.ts'
import type { Context, Place } from './context.ts'
import { finishEnding } from './ending.ts'
import { afterChange, fullLease, fullLine, noLease, tooManyClaims } from './faults.ts'
import { type KnownLease, spanOf } from './known.ts'
import { leaseDigits, leaseIdOf, leaseNumber, parseLeaseId, type StoredClaim } from './layout.ts'
import {
  aheadOf,
  type FormerLine,
  isFree,
  type Line,
  lineOps,
  linesAt,
  linesOf,
  nameOf,
} from './lines.ts'
import type { Compare, KeyValue, Op, TxnAnswer } from './messages.ts'
import { carryOut, emptyAnswer, keep, type Remembered, rememberedIn } from './remembering.ts'

interface Wish {
  readonly specs: readonly ClaimSpec[]
  readonly ifFree: boolean
  readonly request: RequestId | undefined
}

/** What came of it: the revision, and the lines before the claims; or what stood in the way. */
type Outcome =
  | { readonly made: number; readonly lines: readonly Line[]; readonly kvs: readonly KeyValue[] }
  | { readonly remembered: Remembered }
  | { readonly busy: Busy }
  | { readonly lease: ReturnType<Context['known']['judge']> }

export async function grant(context: Context, request: GrantRequest): Promise<Granted | Busy> {
  const { api } = context
  const specs = request.claims ?? []
  if (specs.length > context.limits.claimsPerLease) {
    throw LeaseholdError.from(tooManyClaims(specs.length, context.limits.claimsPerLease))
  }
  const wish = { specs, ifFree: request.ifFree ?? false, request: request.request }
  const { grace = 0, maxLife = Infinity } = request
  const number = await api.grantLease(request.ttl + grace)
  const life = maxLife === Infinity ? undefined : await api.grantLease(maxLife)
  const lease = newLease(context, request, number, life)
  let kept = false
  try {
    const outcome = await makeClaims(context, lease, wish)
    kept = 'made' in outcome || ('remembered' in outcome && isOwn(outcome.remembered, lease.id))
    if ('made' in outcome && life !== undefined) {
      context.news.limited(context.known.learn(outcome.kvs[0]!), lease.record.life!.endOfLife)
    }
    const answer = grantAnswer(context, wish, lease, outcome)
    return await (kept ? afterChange(answer) : answer)
  } catch (error) {
    // Where the outcome is unknown, it may have been granted.
    kept ||= error instanceof LeaseholdError && error.outcome === 'unknown'
    throw error
  } finally {
    if (!kept) for (const each of [number, life]) if (each !== undefined) api.dropLease(each)
  }
}

function newLease(
  { clock }: Context,
  { holder, ttl, grace = 0, maxLife = Infinity, labels = {} }: GrantRequest,
  number: number,
  life: number | undefined,
): NewLease {
  const grantedAt = clock.now()
  const end =
    life === undefined ? undefined : { lease: life, endOfLife: grantedAt + maxLife, end: undefined }
  const record = { holder, ttl, grace, grantedAt, labels, life: end, ending: undefined }
  return { id: leaseDigits(number), number, born: 0, record }
}

function isOwn({ entry }: Remembered, id: string): boolean {
  return entry.did === 'grant' && entry.id === id
}

async function grantAnswer(
  context: Context,
  { specs, request }: Wish,
  { id }: NewLease,
  outcome: Outcome,
): Promise<Granted | Busy> {
  if ('busy' in outcome) return settled(await keep(context, request, outcome.busy))
  if ('lease' in outcome) throw new Error('a lease that is being granted has ended')
  if ('made' in outcome) {
    const ahead = await aheadOf(context, specs, outcome.lines, outcome.made)
    return granted(leaseIdOf(id, outcome.made), outcome.made, specs, ahead)
  }
  const { entry, revision } = outcome.remembered
  if (entry.did !== 'grant') return other(outcome.remembered)
  const lines = await linesAt(context, keysOf(specs), revision)
  const ahead = await aheadOf(context, specs, lines, revision)
  return granted(leaseIdOf(entry.id, revision), revision, specs, ahead)
}

function granted(
  lease: string,
  revision: number,
  specs: readonly ClaimSpec[],
  ahead: Granted['ahead'],
): Granted {
  const token = specs.length > 0 ? revision : 0
  return { outcome: 'granted', lease, revision, token, holds: ahead.length === 0, ahead }
}

export async function claim(context: Context, request: ClaimRequest): Promise<Claimed | Busy> {
  const { known } = context
  const specs = request.claims
  const wish = { specs, ifFree: request.ifFree ?? false, request: request.request }
  let lease = known.lease(request.lease) ?? (await known.look(request.lease))
  for (;;) {
    if (!('id' in lease)) return refuse(context, request, noLease(request.lease, lease.end))
    const full = await findFull(context, lease, specs.length)
    if (full) return refuse(context, request, full)
    const outcome = await makeClaims(context, lease, wish)
    if ('busy' in outcome) return settled(await keep(context, wish.request, outcome.busy))
    if ('made' in outcome) {
      const { made: revision, lines } = outcome
      return claimed(revision, await afterChange(aheadOf(context, specs, lines, revision)))
    }
    if ('remembered' in outcome) return rememberedClaim(context, request, outcome.remembered)
    lease = outcome.lease
    if ('id' in lease && lease.record.ending) {
      await finishEnding(context, lease)
      lease = await known.look(request.lease)
    }
  }
}

/** Whether a lease may not have so many more claims. etcd knows which of them others have taken. */
async function findFull(
  { api, limits }: Context,
  { lease, number, claims }: KnownLease,
  more: number,
): Promise<Refusal | undefined> {
  const most = limits.claimsPerLease
  if (claims.size + more <= most) return undefined
  // Only what was there when etcd was asked: others may be made meanwhile.
  const names = [...claims.keys()]
  const tied = new Set((await api.timeToLive(number, true))?.keys)
  for (const name of names) if (!tied.has(name)) claims.delete(name)
  return claims.size + more > most ? fullLease(lease, claims.size, most) : undefined
}

function claimed(revision: number, ahead: Claimed['ahead']): Claimed {
  return { outcome: 'claimed', revision, token: revision, holds: ahead.length === 0, ahead }
}

async function rememberedClaim(
  context: Context,
  { lease, claims: specs }: ClaimRequest,
  remembered: Remembered,
): Promise<Claimed | Busy> {
  const { entry, revision } = remembered
  if (entry.did !== 'claim') return other(remembered)
  const lines = await linesAt(context, keysOf(specs), revision)
  // Nobody has told of it, where it was the answer to the first try that was lost.
  tellWaiting(context, lease, specs, lines, revision)
  return claimed(revision, await aheadOf(context, specs, lines, revision))
}

async function refuse(
  context: Context,
  request: ClaimRequest,
  refusal: Refusal,
): Promise<Claimed | Busy> {
  const kept = await keep(context, request.request, refused(refusal))
  if ('entry' in kept) return rememberedClaim(context, request, kept)
  throw LeaseholdError.from(refusal)
}

/** The transaction that makes claims, again until nothing has come between. */
async function makeClaims(context: Context, claimant: Claimant, wish: Wish): Promise<Outcome> {
  const { specs, ifFree, request } = wish
  let lease = claimant
  const entry: Entry = lease.born === 0 ? { did: 'grant', id: lease.id } : { did: 'claim' }
  /** As of which revision the lines were seen to be free; 0 to find them empty. */
  let seen = 0
  for (;;) {
    const at = context.clock.now()
    const puts = putsFor(context, lease, specs, at)
    checkSize(puts)
    const txn = {
      compare: [...leaseGuard(context, lease), ...(ifFree ? freeGuards(context, specs, seen) : [])],
      success: [...lineOps(context, keysOf(specs)), ...puts],
      failure: [...leaseOps(context, lease), ...lineOps(context, keysOf(specs))],
    }
    const answer = await carryOut(context, { ...txn, request, entry, failsOften: ifFree })
    if (answer.succeeded) {
      const outcome = madeOf(specs, puts, answer)
      await afterChange(checkLines(context, lease, wish, outcome, at))
      return outcome
    }
    const remembered = rememberedIn(request, answer)
    if (remembered) return { remembered }
    if ('changed' in lease) {
      const [, record, ended] = answer.results
      const found = context.known.judge(lease.lease, record!.kvs[0], ended!.kvs[0])
      if (!('id' in found) || found.record.ending) return { lease: found }
      // Its record may have been rewritten, as by a break: it is compared with what it is now.
      lease = found
    }
    const lines = linesOf(keysOf(specs), answer.results.slice(lease.born === 0 ? 1 : 3))
    const { revision } = answer
    const isBusy = ifFree && !lines.every((line, at) => isFree(line, specs[at]!))
    if (isBusy) {
      const ahead = await aheadOf(context, specs, lines, revision)
      return { busy: { outcome: 'busy', revision, ahead } }
    }
    seen = revision
  }
}

/** The lease must be as it is known. One that is being granted is only known here. */
function leaseGuard({ layout }: Context, lease: Claimant): Compare[] {
  if (!('changed' in lease)) return []
  const key = layout.lease(lease.id)
  return [{ key, of: 'changed', is: 'equal', revision: lease.changed }]
}

function leaseOps({ layout }: Context, lease: Claimant): Op[] {
  if (!('changed' in lease)) return []
  return [layout.get(layout.lease(lease.id)), layout.get(layout.ended(lease.id))]
}

/** Nobody has joined the lines since they were seen. Who has left them since does no harm. */
function freeGuards({ layout }: Context, specs: readonly ClaimSpec[], seen: number): Compare[] {
  return specs.map(({ key }) =>
    seen === 0
      ? { ...layout.line(key), of: 'created', is: 'equal', revision: 0 }
      : { ...layout.line(key), of: 'changed', is: 'less', revision: seen + 1 },
  )
}

/** What this call has claimed, known without being read back. */
function ownClaim(
  { id, record, born }: Claimant,
  { key, mode = 'exclusive', limit, value }: ClaimSpec,
  { key: name }: KeyValue,
  token: number,
  claimedAt: number,
): StoredClaim {
  const owner = born || token
  return {
    key,
    name: nameOf(name),
    mode,
    limit,
    lease: id,
    holder: record.holder,
    span: spanOf(record),
    claimedAt,
    born: owner,
    at: claimedAt,
    value,
    token,
    leaseId: leaseIdOf(id, owner),
  }
}

function madeOf(
  specs: readonly ClaimSpec[],
  puts: readonly Put[],
  { revision, results }: TxnAnswer,
): Extract<Outcome, { made: number }> {
  const kvs = puts.map(({ key, value }) => ({ key, value, created: revision, changed: revision }))
  return { made: revision, lines: linesOf(keysOf(specs), results), kvs }
}

/** After claims were made: sees whether the lines had room for them, and tells of those that wait. */
async function checkLines(
  context: Context,
  lease: Claimant,
  { specs, request }: Wish,
  { made, lines, kvs }: Extract<Outcome, { made: number }>,
  at: number,
): Promise<void> {
  const { known, limits } = context
  if (lease.born === 0) known.learn(kvs[0]!)
  const claims = kvs.slice(kvs.length - specs.length)
  const full = lines.find(({ names }) => names.length >= limits.claimsPerKey)
  if (full !== undefined) {
    const refusal = fullLine(full.key, full.names.length)
    await undo(context, claims, request, refusal)
    throw LeaseholdError.from(refusal)
  }
  for (let index = 0; index < specs.length; index++) {
    known.claimed(ownClaim(lease, specs[index]!, claims[index]!, made, at))
  }
  if (lines.every(({ names }) => names.length === 0)) return
  const former = lines.map((line, at): FormerLine => ({ ...line, own: claims[at]!.key }))
  tellWaiting(context, leaseIdOf(lease.id, lease.born || made), specs, former, made)
}

/** Whoever watches the lease must hear when claims hold that were made behind these lines. */
function tellWaiting(
  context: Context,
  lease: LeaseId,
  specs: readonly ClaimSpec[],
  lines: readonly FormerLine[],
  token: Token,
): void {
  const places = lines.flatMap((line, at): Place[] => {
    if (line.own === undefined) return []
    const before = line.names.map(({ key }) => key)
    return [{ key: line.key, name: line.own, before, holds: isFree(line, specs[at]!) }]
  })
  if (places.every(({ holds }) => holds)) return
  if (!context.news.waits(lease, token, token, places)) signalWaiting(context, lease)
}

/** Somebody may watch this lease elsewhere, and must look where its new claim stands. */
function signalWaiting({ api, layout }: Context, waiting: LeaseId): void {
  const { id } = parseLeaseId(waiting)!
  const lease = leaseNumber(id)
  const guard: Compare = { key: layout.lease(id), of: 'created', is: 'equal', revision: 0 }
  const put: Op = { do: 'put', key: layout.signal(id), value: '', lease }
  api.txn({ compare: [guard], success: [], failure: [put] }, true).catch(() => {})
}

/** Takes back claims that would be too many. They stood at the end of a very long line. */
async function undo(
  { api, layout, requests }: Context,
  claims: readonly KeyValue[],
  request: RequestId | undefined,
  refusal: Refusal,
): Promise<void> {
  const success: Op[] = claims.map(({ key }) => ({ do: 'delete', key }))
  if (request !== undefined) {
    const value = writeEntry({ did: 'nothing', answer: refused(refusal) })
    const lease = await requests.lease(request)
    success.push({ do: 'put', key: layout.request(request), value, lease })
  }
  await api.txn({ compare: [], success, failure: [] }, true)
}

function settled(answer: Busy | Remembered): Busy {
  return 'entry' in answer ? other(answer) : answer
}

/** The answer to a repeated request that changed nothing, or that was another call's. */
function other(remembered: Remembered): Busy {
  const answer = emptyAnswer(remembered)
  if (answer !== undefined && 'outcome' in answer) return answer
  throw new LeaseholdError(
    'invalid-argument',
    'this request id was used for another call: give each call one of its own',
  )
}

function keysOf(specs: readonly ClaimSpec[]): Key[] {
  return specs.map(({ key }) => key)
}
