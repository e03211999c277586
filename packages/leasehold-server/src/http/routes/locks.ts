import {
  type Ahead,
  type Claim,
  type Key,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Mode,
  show,
  type Token,
} from 'leasehold/port'
import { goneError } from '../requests/call.ts'
import {
  lostError,
  type Queued,
  renewed,
  stillHeld,
  waitUntilHeld,
  withdraw,
} from '../requests/waits.ts'
import { NotAvailable } from '../responses/problem.ts'
import type { Call, Parameter, Route } from '../route.ts'
import { durationOf, optionalDuration, waitOf } from './durations.ts'
import {
  answered,
  duration,
  flag,
  holderPart,
  keyPart,
  leasePart,
  list,
  named,
  text,
  waitPart,
  whole,
} from './schemas.ts'

/** Locks for clients that have only HTTP: each is its own lease with one claim. */

const DEFAULT_TTL = '30s'

const TAKE: Readonly<Record<string, Parameter>> = {
  ttl: {
    schema: duration,
    about: 'How long it is held unless it is renewed. Default: 30s.',
    example: '30s',
  },
  wait: waitPart('How long to wait in the queue, first in, first out. Default: no wait.'),
  holder: holderPart,
  mode: { schema: { enum: ['exclusive', 'shared'] }, about: 'Default: `exclusive`.' },
  limit: { schema: whole(1), about: 'With `shared`: the most holders at once.' },
  value: {
    schema: text(),
    about: 'A description. Others can read it.',
    example: 'nightly report',
  },
  grace: { schema: duration, about: 'How much longer it stays reserved after a missed renewal.' },
  maxLife: {
    schema: duration,
    about: 'The longest total life, including the wait, even if it is renewed.',
  },
}

export const LOCKS: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/locks/{key}',
    rest: true,
    id: 'readLock',
    group: 'Locks',
    title: 'Read who holds a lock',
    params: { key: keyPart },
    answer: {
      status: 200,
      about: 'Its holders, and how many wait. Without holders it is free.',
      schema: answered({
        key: text(),
        held: flag,
        holders: list(named('Claim')),
        waiting: whole(),
        revision: whole(),
      }),
    },
    handle: look,
  },
  {
    method: 'POST',
    path: '/v1/locks/{key}',
    rest: true,
    id: 'takeLock',
    group: 'Locks',
    title: 'Acquire a lock',
    about:
      'Waits in the queue for up to `wait`. Closing the connection leaves the queue. Renew the lock with PUT before `remaining` ends, for example every third of the ttl.',
    params: { key: keyPart },
    query: TAKE,
    answer: { status: 201, about: 'The lock is held.', schema: named('Held') },
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
    title: 'Renew a lock',
    about: 'The lock has its full ttl again. 410 means that it is lost: stop the work under it.',
    params: { key: keyPart },
    query: { lease: leasePart },
    answer: { status: 200, about: 'The lock is still held.', schema: named('Held') },
    problems: [404, 410],
    handle: keep,
  },
  {
    method: 'DELETE',
    path: '/v1/locks/{key}',
    rest: true,
    id: 'releaseLock',
    group: 'Locks',
    title: 'Release a lock',
    about: 'The next waiter in the queue holds it at once.',
    params: { key: keyPart },
    query: { lease: leasePart },
    answer: { status: 200, about: 'The lock is released.', schema: named('Changed') },
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

async function look({ store, params }: Call): Promise<unknown> {
  const key = params['key']!
  const { claims, holders, count, revision } = await store.read({ key })
  const waiting = count - holders
  return { key, held: holders > 0, holders: claims.slice(0, holders), waiting, revision }
}

function take(call: Call): Promise<HeldLock> {
  return takeLock(call, call.params['key']!)
}

export interface HeldLock {
  readonly key: Key
  readonly lease: LeaseId
  readonly token: Token
  readonly remaining: number
}

/** Acquires the lock of a key, with the options in the query of the call. */
export async function takeLock(call: Call, key: Key): Promise<HeldLock> {
  const { store, principal, request } = call
  const given: TakeQuery = call.query
  const { mode, limit, value, holder = principal.name } = given
  const ttl = durationOf('ttl', given.ttl ?? DEFAULT_TTL)
  const grace = optionalDuration('grace', given.grace)
  const maxLife = optionalDuration('maxLife', given.maxLife)
  const wait = waitOf(call)
  const claims = [{ key, mode, limit, value }]
  const ifFree = wait === 0
  const granted = await store.grant({ holder, ttl, grace, maxLife, claims, ifFree, request })
  if (granted.outcome === 'busy') throw NotAvailable.from(granted)
  const { lease, token } = granted
  const queued: Queued = { lease, token, ttl, wait, targets: [{ lease }], by: holder }
  if (!granted.holds && !(await waitUntilHeld(call, queued))) {
    throw await tooLate(store, key, granted.ahead)
  }
  // With an Idempotency-Key another caller may know of it or ask again: only its ttl ends it.
  if (request !== undefined) {
    return { key, lease, token, remaining: await stillHeld(call.serverActions, queued, [key]) }
  }
  try {
    // A claim that waited has used some of its time.
    const remaining = granted.holds ? ttl : await stillHeld(call.serverActions, queued, [key])
    if (call.gone) throw goneError()
    return { key, lease, token, remaining }
  } catch (error) {
    await withdraw(call, queued)
    throw error
  }
}

/** A caller without the right to read keys gets the holder at the time of its claim. */
async function tooLate(
  store: LeaseStore,
  key: Key,
  before: readonly Ahead[],
): Promise<NotAvailable> {
  const ahead = await whoHolds(store, key).catch(() => before)
  const holder = ahead[0]?.first.holder
  const held = holder === undefined ? '' : `: ${holder} holds it`
  return new NotAvailable('timeout', `${show(key)} was not free in time${held}; wait longer`, ahead)
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
  // The store answers for an ended lease and for a repeated request.
  const answer = await store.release({ lease, keys: [key], token: token ?? 1, request })
  // The lease has no other claim or child, so it ends with its lock.
  if (token !== undefined && found.lease!.claims === 1 && found.lease!.children === 0) {
    await store.revoke({ target: { lease }, why: 'its lock was released' }).catch(() => {})
  }
  return answer
}

interface Found {
  readonly ttl: number
  readonly claim: Claim
}

/** The claim of this lease on the key. A lease may outlive a revoked claim. */
async function lockOf(store: LeaseStore, key: Key, lease: LeaseId): Promise<Found> {
  const { lease: found, end, claims } = await store.read({ lease })
  if (found === undefined) {
    if (end !== undefined) throw lostError(`the lock ${show(key)} is lost`, end)
    throw new LeaseholdError('lease-not-found', 'the lease does not exist, or it ended long ago')
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
    `this lease does not hold ${show(key)}: use the key and the lease of the same lock`,
  )
}

/** The public id, without the secret. */
function plainOf(lease: LeaseId): LeaseId {
  const at = lease.lastIndexOf('~')
  return at < 0 ? lease : lease.slice(0, at)
}
