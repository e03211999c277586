import {
  type Ahead,
  type Claim,
  type Key,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Mode,
  show,
} from 'leasehold/port'
import { goneError } from './call.ts'
import { NotHad } from './problem.ts'
import type { Call, Parameter, Route } from './route.ts'
import {
  duration,
  holderPart,
  keyPart,
  leasePart,
  named,
  text,
  waitPart,
  whole,
} from './schemas.ts'
import { durationOf, maybeDuration, waitOf } from './values.ts'
import { comesToHold, lostError, type Queued, renewed, stillHeld, withdraw } from './waiting.ts'

/** Locks for those who have nothing but HTTP: each is a lease of its own, with one claim. */

const DEFAULT_TTL = '30s'

const TAKE: Readonly<Record<string, Parameter>> = {
  ttl: {
    schema: duration,
    about: 'How long it is held unless it is kept. 30s if not given.',
    example: '30s',
  },
  wait: waitPart('How long to wait in line, first in first out. Not at all if not given.'),
  holder: holderPart,
  mode: { schema: { enum: ['exclusive', 'shared'] }, about: '`exclusive` if not given.' },
  limit: { schema: whole(1), about: 'With `shared`: at most so many at once.' },
  value: {
    schema: text(),
    about: 'What it is for. Others can read it.',
    example: 'nightly report',
  },
  grace: { schema: duration, about: 'How much longer nobody else gets it when it was not kept.' },
  maxLife: {
    schema: duration,
    about: 'How long it may live in all, kept or not, waiting included.',
  },
}

export const LOCKS: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/locks/{key}',
    rest: true,
    id: 'takeLock',
    group: 'Locks',
    title: 'Takes a lock',
    about:
      'Waits in line for as long as `wait` says. Whoever closes the connection while it waits has left the line. Keep the lock with PUT before `remaining` is over: a third of the ttl is a good time.',
    params: { key: keyPart },
    query: TAKE,
    answer: { status: 201, about: 'It is held.', schema: named('Held') },
    problems: [409, 410],
    repeatable: true,
    handle: take,
  },
  {
    method: 'PUT',
    path: '/v1/locks/{key}',
    rest: true,
    id: 'keepLock',
    group: 'Locks',
    title: 'Keeps a lock',
    about: 'It has its full ttl again. 410 where it is lost: stop what you do under it.',
    params: { key: keyPart },
    query: { lease: leasePart },
    answer: { status: 200, about: 'It is still held.', schema: named('Held') },
    problems: [404, 410],
    handle: keep,
  },
  {
    method: 'DELETE',
    path: '/v1/locks/{key}',
    rest: true,
    id: 'releaseLock',
    group: 'Locks',
    title: 'Releases a lock',
    about: 'The next in line has it at once.',
    params: { key: keyPart },
    query: { lease: leasePart },
    answer: { status: 200, about: 'It is free.', schema: named('Changed') },
    problems: [404, 410],
    repeatable: true,
    handle: release,
  },
]

interface TakeQuery {
  readonly ttl?: string
  readonly holder?: string
  readonly mode?: Mode
  readonly limit?: number
  readonly value?: string
  readonly grace?: string
  readonly maxLife?: string
}

async function take(call: Call): Promise<unknown> {
  const { store, principal, request } = call
  const key = call.params['key']!
  const given: TakeQuery = call.query
  const { mode, limit, value, holder = principal.name } = given
  const ttl = durationOf('ttl', given.ttl ?? DEFAULT_TTL)
  const grace = maybeDuration('grace', given.grace)
  const maxLife = maybeDuration('maxLife', given.maxLife)
  const wait = waitOf(call)
  const claims = [{ key, mode, limit, value }]
  const ifFree = wait === 0
  const granted = await store.grant({ holder, ttl, grace, maxLife, claims, ifFree, request })
  if (granted.outcome === 'busy') throw NotHad.from(granted)
  const { lease, token } = granted
  const queued: Queued = { lease, token, ttl, wait, targets: [{ lease }], by: holder }
  if (!granted.holds && !(await comesToHold(call, queued))) {
    throw await tooLate(store, key, granted.ahead)
  }
  // With an Idempotency-Key somebody may know of it, or will ask again: only its ttl ends it.
  if (request !== undefined) {
    return { key, lease, token, remaining: await stillHeld(call.acts, queued, [key]) }
  }
  try {
    // What has waited has used up some of its time.
    const remaining = granted.holds ? ttl : await stillHeld(call.acts, queued, [key])
    if (call.gone) throw goneError()
    return { key, lease, token, remaining }
  } catch (error) {
    await withdraw(call, queued)
    throw error
  }
}

/** Whoever may not read keys is told what the store said when it took its place. */
async function tooLate(store: LeaseStore, key: Key, before: readonly Ahead[]): Promise<NotHad> {
  const ahead = await whoHolds(store, key).catch(() => before)
  const holder = ahead[0]?.first.holder
  const who = holder === undefined ? '' : `: ${holder} holds it`
  return new NotHad('timeout', `${show(key)} did not come in time${who}; wait longer`, ahead)
}

async function whoHolds(store: LeaseStore, key: Key): Promise<readonly Ahead[]> {
  const { claims, holders } = await store.read({ key })
  const [first] = claims
  return first === undefined ? [] : [{ key, count: holders, first }]
}

async function keep(call: Call): Promise<unknown> {
  const { store } = call
  const key = call.params['key']!
  const lease: LeaseId = call.query['lease']!
  const { ttl, claim } = await lockOf(store, key, lease)
  return { key, lease, token: claim.token, remaining: await renewed(store, lease, ttl) }
}

async function release(call: Call): Promise<unknown> {
  const { store, request } = call
  const key = call.params['key']!
  const lease: LeaseId = call.query['lease']!
  const found = await store.read({ lease })
  const token = found.claims.find((claim) => claim.key === key)?.token
  const mayBeRepeated = found.lease === undefined || request !== undefined
  if (token === undefined && !mayBeRepeated) throw notThere(key)
  // The store answers what became of an ended lease, or of this very request.
  const answer = await store.release({ lease, keys: [key], token: token ?? 1, request })
  // The lease has no claim any more; where it has others it is not one of ours to end.
  if (token !== undefined && found.lease!.claims === 1 && found.lease!.children === 0) {
    await store.revoke({ target: { lease }, why: 'its lock was released' }).catch(() => {})
  }
  return answer
}

interface Found {
  readonly ttl: number
  readonly claim: Claim
}

/** The claim of this lease on the key: a lease may live on when its key was taken from it. */
async function lockOf(store: LeaseStore, key: Key, lease: LeaseId): Promise<Found> {
  const { lease: found, end, claims } = await store.read({ lease })
  if (found === undefined) {
    if (end !== undefined) throw lostError(`the lock ${show(key)} is lost`, end)
    throw new LeaseholdError('lease-not-found', 'no such lease, or it ended long ago')
  }
  const claim = claims.find((one) => one.key === key)
  if (claim === undefined) throw await takenAway(store, key, lease)
  if (claim.heldSince === undefined) throw notThere(key)
  return { ttl: found.ttl, claim }
}

async function takenAway(store: LeaseStore, key: Key, lease: LeaseId): Promise<LeaseholdError> {
  const history = await store.read({ history: key }).catch(() => undefined)
  const tenure = history?.tenures.find((one) => one.lease === plainOf(lease))
  return lostError(`the lock ${show(key)} is lost`, tenure?.end ?? { reason: 'revoked' })
}

function notThere(key: Key): LeaseholdError {
  return new LeaseholdError(
    'claim-not-found',
    `this lease does not hold ${show(key)}: give the key and the lease of one and the same lock`,
  )
}

/** The id that others see: without the secret that stands behind it. */
function plainOf(lease: LeaseId): LeaseId {
  const at = lease.lastIndexOf('~')
  return at < 0 ? lease : lease.slice(0, at)
}
