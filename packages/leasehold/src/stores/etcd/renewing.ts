import type { Capped, End, LeaseId, Lost, Renewed } from '../../port/index.ts'
import type { Context } from './context.ts'
import { afterChange } from './faults.ts'
import type { KeepAlive } from './keep-alive.ts'
import { type KnownLease, spanOf } from './known.ts'
import { leaseNumber, parseLeaseId } from './layout.ts'
import type { Lives } from './lives.ts'

/** So many records are read at once. */
const READ_MOST = 1000

const EXPIRED: End = { reason: 'expired' }

interface Outcome {
  readonly lease: LeaseId
  readonly id: string | undefined
  readonly alive: boolean
}

/**
 * Keeps the etcd leases alive. Whether a lease was ended or its life limited is in its record; the
 * records of those that are watched here are known, and those of the others are read.
 */
export async function renew(
  context: Context,
  keepAlive: KeepAlive,
  lives: Lives,
  leases: readonly LeaseId[],
): Promise<Renewed> {
  if (leases.length === 0) return { lost: [], capped: [] }
  const ids = leases.map((lease) =>
    typeof lease === 'string' ? parseLeaseId(lease)?.id : undefined,
  )
  const numbers = ids.map((id) => (id === undefined ? 0 : leaseNumber(id)))
  const ours = numbers.filter((number) => number > 0)
  const alive = ours.length > 0 ? await keepAlive.renew(ours) : []
  const outcomes = leases.map((lease, at): Outcome => {
    return { lease, id: ids[at], alive: ids[at] !== undefined && alive.shift()! }
  })
  return afterChange(exceptions(context, keepAlive, lives, outcomes))
}

/** Which of them are no more, or have little left. */
async function exceptions(
  context: Context,
  keepAlive: KeepAlive,
  lives: Lives,
  outcomes: readonly Outcome[],
): Promise<Renewed> {
  const renewed: { lost: Lost[]; capped: Capped[] } = { lost: [], capped: [] }
  const unsure = outcomes.filter(({ lease, alive }) => !alive || !context.news.watches(lease))
  const read = await readAll(context, unsure)
  for (const { lease, alive } of outcomes) {
    const found = read.get(lease) ?? context.known.lease(lease) ?? (await context.known.look(lease))
    if (!('id' in found)) renewed.lost.push({ lease, end: found.end })
    else if (alive || (await isAlive(keepAlive, found))) {
      await renewOne(context, lives, found, renewed)
    } else renewed.lost.push({ lease, end: EXPIRED })
  }
  return renewed
}

/**
 * The leader did not know a lease that is there: either it is about to go, or it was granted through
 * another member and the leader had not carried that out yet.
 */
async function isAlive(keepAlive: KeepAlive, { number }: KnownLease): Promise<boolean> {
  return (await keepAlive.renew([number]))[0]!
}

type Found = ReturnType<Context['known']['judge']>

/** How these leases are in etcd. */
async function readAll(
  context: Context,
  outcomes: readonly Outcome[],
): Promise<Map<LeaseId, Found>> {
  const { layout, api, known } = context
  const found = new Map<LeaseId, Found>()
  const ours = outcomes.filter(({ id }) => id !== undefined)
  for (let at = 0; at < ours.length; at += READ_MOST) {
    const some = ours.slice(at, at + READ_MOST)
    const { results } = await api.read(
      some.flatMap(({ id }) => [layout.get(layout.lease(id!)), layout.get(layout.ended(id!))]),
    )
    for (const [index, { lease, id, alive }] of some.entries()) {
      const lookedAt = known.judge(
        lease,
        results[2 * index]!.kvs[0],
        results[2 * index + 1]!.kvs[0],
      )
      // Ended by a call whose process died before it had tidied up, or about to be gone.
      if (!('id' in lookedAt) && alive) api.dropLease(leaseNumber(id!))
      found.set(lease, lookedAt)
    }
  }
  for (const { lease, id } of outcomes) if (id === undefined) found.set(lease, { end: undefined })
  return found
}

async function renewOne(
  context: Context,
  lives: Lives,
  known: KnownLease,
  renewed: { lost: Lost[]; capped: Capped[] },
): Promise<void> {
  const { lease } = known
  const { life, ending } = known.record
  const remaining = ending ? 0 : await remainingLife(context, known)
  if (remaining <= 0) {
    await lives.end(context, lease)
    const found = await context.known.look(lease)
    renewed.lost.push({ lease, end: 'id' in found ? undefined : found.end })
    return
  }
  context.known.renewed(known)
  if (life !== undefined && remaining <= spanOf(known.record)) {
    if (known.endOfLife === undefined) {
      context.news.limited(known, context.clock.now() + remaining)
    }
    renewed.capped.push({ lease, remaining, end: life?.end })
  }
}

/** Milliseconds until the end of its life, by this process's own count or by etcd's. */
export async function remainingLife(
  { api, clock }: Context,
  { record, endOfLife }: KnownLease,
): Promise<number> {
  if (record.life === undefined) return Infinity
  if (endOfLife !== undefined) return Math.max(endOfLife - clock.now(), 0)
  const left = await api.timeToLive(record.life.lease, false)
  // What is told in whole seconds may be up to a second more.
  return left === undefined ? 0 : (left.remaining + 1) * 1000
}
