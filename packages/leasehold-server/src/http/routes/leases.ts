import {
  type ClaimSpec,
  type GrantRequest,
  type Key,
  LeaseholdError,
  type LeaseId,
  type RevokeTarget,
  type Token,
} from 'leasehold/port'
import { goneError } from '../requests/call.ts'
import { renewed, stillClaimed, stillHeld, waitUntilHeld, withdraw } from '../requests/waits.ts'
import { NotAvailable } from '../responses/problem.ts'
import type { Call, Route } from '../route.ts'
import { durationOf, optionalDuration, waitOf } from './durations.ts'
import {
  answered,
  byPart,
  claimSpec,
  duration,
  EXAMPLE,
  flag,
  given,
  leasePart,
  limitPart,
  list,
  named,
  record,
  span,
  text,
  texts,
  tokenPart,
  waitPart,
  whole,
  whyPart,
} from './schemas.ts'

const claims = { ...list(claimSpec), minItems: 1, maxItems: 256 }

const granted = answered({
  lease: text(),
  revision: whole(),
  token: { ...whole(), description: 'The fencing token of the claims; 0 without claims.' },
  holds: { ...flag, description: 'Whether all claims hold now. Otherwise they wait.' },
  ahead: list(named('Ahead')),
})

const claimed = answered({
  revision: whole(),
  token: whole(1),
  holds: flag,
  ahead: list(named('Ahead')),
})

export const LEASES: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/leases',
    id: 'grantLease',
    group: 'Leases',
    title: 'Grant a lease',
    about: 'With `claims`, it also claims keys in the same step, with one token for all of them.',
    body: {
      schema: given(
        {
          holder: text(),
          ttl: duration,
          grace: duration,
          maxLife: duration,
          parent: text('The parent lease; this one ends with it.'),
          labels: record,
          claims,
          ifFree: { ...flag, description: 'Grant only if all claims hold at once.' },
        },
        'ttl',
      ),
      example: { holder: 'me', ttl: '30s', claims: [{ key: 'accounts/1' }, { key: 'accounts/2' }] },
    },
    answer: { status: 201, about: 'The lease is granted.', schema: granted },
    problems: [409],
    repeatable: true,
    handle: grant,
  },
  {
    method: 'GET',
    path: '/v1/leases',
    id: 'listLeases',
    group: 'Leases',
    title: 'List all leases, page by page',
    query: {
      after: { schema: text(), about: 'The last lease of the previous page.' },
      limit: limitPart,
    },
    answer: {
      status: 200,
      about: 'One page. If `more` is true, ask again after its last lease.',
      schema: answered({ revision: whole(), leases: list(named('Lease')), more: flag }),
    },
    handle: ({ store, query }) => store.read({ leases: true, ...query }),
  },
  {
    method: 'POST',
    path: '/v1/leases/renew',
    id: 'renewLeases',
    group: 'Leases',
    title: 'Renew many leases',
    about: 'The answer lists only the exceptions. All other leases were renewed.',
    body: {
      schema: given({ leases: { ...texts, maxItems: 100_000 } }, 'leases'),
      example: { leases: [EXAMPLE.lease] },
    },
    answer: {
      status: 200,
      about: 'Done.',
      schema: answered({
        lost: list(answered({ lease: text(), end: named('End') }, 'end')),
        capped: list(answered({ lease: text(), remaining: span, end: named('End') }, 'end')),
      }),
    },
    handle: ({ store, body }) => store.renew((body as { leases: LeaseId[] }).leases),
  },
  {
    method: 'GET',
    path: '/v1/leases/{lease}',
    id: 'readLease',
    group: 'Leases',
    title: 'Read a lease with its claims',
    params: { lease: leasePart },
    query: { limit: limitPart },
    answer: {
      status: 200,
      about: 'The lease.',
      schema: answered({ revision: whole(), lease: named('Lease'), claims: list(named('Claim')) }),
    },
    problems: [404, 410],
    handle: readLease,
  },
  {
    method: 'PUT',
    path: '/v1/leases/{lease}',
    id: 'renewLease',
    group: 'Leases',
    title: 'Renew a lease',
    params: { lease: leasePart },
    answer: { status: 200, about: 'The lease has its full ttl again.', schema: named('Kept') },
    problems: [404, 410],
    handle: async (call) => {
      const lease = call.params['lease']!
      const { ttl } = (await readLease(call)).lease
      return { lease, remaining: await renewed(call.store, lease, ttl) }
    },
  },
  {
    method: 'DELETE',
    path: '/v1/leases/{lease}',
    id: 'revokeLease',
    group: 'Leases',
    title: 'Revoke or break a lease',
    about:
      'Without `after`, the lease ends at once. With `after`, it gets a final deadline that no renewal can pass. Ending a lease of others needs the right to it and a `why`.',
    params: { lease: leasePart },
    query: {
      after: {
        schema: duration,
        about: 'The time until the final deadline. Default: at once.',
        example: '1m',
      },
      by: byPart,
      why: whyPart,
    },
    answer: { status: 200, about: 'Done.', schema: named('Revoked') },
    problems: [404, 410],
    repeatable: true,
    handle: (call) => revoke(call, { lease: call.params['lease']! }),
  },
  {
    method: 'DELETE',
    path: '/v1/leases/{lease}/children',
    id: 'revokeChildren',
    group: 'Leases',
    title: 'Revoke all leases under a lease',
    params: { lease: leasePart },
    query: { after: { schema: duration, about: 'As for one lease.' }, by: byPart, why: whyPart },
    answer: {
      status: 200,
      about: 'Done. If `more` is true, ask again.',
      schema: named('Revoked'),
    },
    problems: [404, 410],
    repeatable: true,
    handle: (call) => revoke(call, { parent: call.params['lease']! }),
  },
  {
    method: 'POST',
    path: '/v1/leases/{lease}/claims',
    id: 'claimKeys',
    group: 'Leases',
    title: 'Claim keys for a lease',
    about:
      'Without `wait`, a claim that does not hold stays in the queue as long as the lease lives. With `wait`, it is withdrawn if it does not hold in time or the connection closes.',
    params: { lease: leasePart },
    query: { wait: waitPart('How long to wait for all keys.') },
    body: {
      schema: given({ claims, ifFree: flag }, 'claims'),
      example: { claims: [{ key: EXAMPLE.key }], ifFree: true },
    },
    answer: { status: 201, about: 'The keys are claimed.', schema: claimed },
    problems: [404, 409, 410],
    repeatable: true,
    handle: claim,
  },
  {
    method: 'DELETE',
    path: '/v1/leases/{lease}/claims',
    id: 'releaseKeys',
    group: 'Leases',
    title: 'Release keys of a lease',
    params: { lease: leasePart },
    query: {
      key: {
        schema: { ...texts, minItems: 1 },
        about: 'A key; repeat it for several keys.',
        required: true,
        example: [EXAMPLE.key],
      },
      token: tokenPart,
    },
    answer: { status: 200, about: 'Done.', schema: named('Changed') },
    problems: [404, 410],
    repeatable: true,
    handle: ({ store, params, query, request }) => {
      const { key: keys, token }: { key: readonly Key[]; token: Token } = query as never
      return store.release({ lease: params['lease']!, keys, token, request })
    },
  },
]

interface GrantBody extends Omit<GrantRequest, 'holder' | 'ttl' | 'grace' | 'maxLife'> {
  readonly holder?: string
  readonly ttl: string | number
  readonly grace?: string | number
  readonly maxLife?: string | number
}

async function grant({ store, serverActions, principal, body, request }: Call): Promise<unknown> {
  const { holder = principal.name, ...wanted } = body as GrantBody
  const ttl = durationOf('ttl', wanted.ttl)
  const grace = optionalDuration('grace', wanted.grace)
  const maxLife = optionalDuration('maxLife', wanted.maxLife)
  const answer = await store.grant({ ...wanted, holder, ttl, grace, maxLife, request })
  if (answer.outcome === 'busy') throw NotAvailable.from(answer)
  const { outcome: _, ...shown } = answer
  if (request !== undefined)
    await stillHeld(serverActions, answer, answer.holds ? keysOf(wanted.claims) : [])
  return shown
}

function keysOf(claims: readonly ClaimSpec[] | undefined): Key[] {
  return claims?.map(({ key }) => key) ?? []
}

async function readLease({ store, params, query }: Call) {
  const { limit }: { limit?: number } = query
  const reading = await store.read({ lease: params['lease']!, limit })
  const { revision, lease, claims, end } = reading
  if (lease !== undefined) return { revision, lease, claims }
  if (end === undefined) {
    throw new LeaseholdError('lease-not-found', 'the lease does not exist, or it ended long ago')
  }
  throw new LeaseholdError('lease-ended', `the lease has ended: ${end.reason}`, end)
}

/** Revokes the target. */
export function revoke({ store, query, request }: Call, target: RevokeTarget): Promise<unknown> {
  const { by, why, after }: { by?: string; why?: string; after?: string } = query
  const period = optionalDuration('after', after)
  return store.revoke({ target, by, why, after: period, request })
}

async function claim(call: Call): Promise<unknown> {
  const { store, serverActions, params, principal, body, request } = call
  const lease = params['lease']!
  const { claims, ifFree } = body as { claims: readonly ClaimSpec[]; ifFree?: boolean }
  const wait = waitOf(call)
  const answer = await store.claim({ lease, claims, ifFree, request })
  if (answer.outcome === 'busy') throw NotAvailable.from(answer)
  const { outcome: _, ...shown } = answer
  const { token } = answer
  const keys = keysOf(claims)
  const [first, ...others] = keys.map((key) => ({ key, token }))
  const given = { targets: [first!, ...others] as const, by: principal.name }
  if (!answer.holds && wait > 0) {
    const ttl = (await serverActions.readLease(lease)).lease?.ttl ?? Infinity
    if (!(await waitUntilHeld(call, { lease, token, ttl, wait, ...given }))) {
      throw new NotAvailable('timeout', 'not all keys were free in time: wait longer', answer.ahead)
    }
    if (request === undefined && call.gone) {
      await withdraw(call, given)
      throw goneError()
    }
    Object.assign(shown, { holds: true, ahead: [] })
  }
  if (request !== undefined && shown.holds)
    await stillClaimed(serverActions, { lease, token }, keys)
  return shown
}
