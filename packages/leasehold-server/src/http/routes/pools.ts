import type { Permit, Pool, PoolDefinition, TakeOptions } from 'leasehold'
import { LeaseholdError, type LeaseId, show } from 'leasehold/port'
import { goneError } from '../requests/call.ts'
import type { PrincipalSession } from '../requests/principal-session.ts'
import { renewed } from '../requests/waits.ts'
import { NotAvailable } from '../responses/problem.ts'
import type { Call, Parameter, Route } from '../route.ts'
import { durationOf, waitOf } from './durations.ts'
import {
  answered,
  anything,
  duration,
  flag,
  given,
  leasePart,
  list,
  span,
  text,
  time,
  waitPart,
  whole,
} from './schemas.ts'

const DEFAULT_TTL = '1h'

const pool: Parameter = {
  schema: text(),
  about: 'The name of the pool.',
  required: true,
  example: 'gpu',
}

const definition = given(
  {
    resources: {
      type: 'array',
      minItems: 1,
      maxItems: 1000,
      items: {
        type: 'object',
        properties: { name: text(), shares: whole(1) },
        required: ['name'],
        additionalProperties: { type: ['string', 'number', 'boolean'] },
      },
    },
    tenants: {
      type: 'object',
      additionalProperties: given({ weight: { type: 'number' } }),
    },
    halfLife: duration,
    notice: duration,
    maxHold: duration,
  },
  'resources',
)

const permitStatus = answered(
  {
    token: whole(1),
    holder: text(),
    tenant: text(),
    kind: text(),
    priority: { type: 'number' },
    preemptible: flag,
    shares: whole(),
    since: time,
    until: time,
    noticed: flag,
  },
  'until',
)

const status = answered({
  resources: list(
    answered({
      name: text(),
      attributes: anything,
      shares: whole(1),
      free: whole(),
      permits: list(permitStatus),
    }),
  ),
  queue: list(
    answered(
      {
        token: whole(1),
        holder: text(),
        tenant: text(),
        kind: text(),
        priority: { type: 'number' },
        count: whole(1),
        since: time,
        forecast: anything,
      },
      'forecast',
    ),
  ),
  tenants: list(
    answered({
      tenant: text(),
      holds: { type: 'number' },
      guaranteed: { type: 'number' },
      waiting: whole(),
      used: { type: 'number' },
    }),
  ),
  age: { type: 'number' },
})

const permit = answered({
  lease: text('Keep it secret: anyone who has it can extend and return the permit.'),
  token: whole(1),
  resources: list(text()),
  keys: list(text()),
  tenant: text(),
  kind: text(),
  remaining: span,
})

const extended = answered(
  {
    lease: text(),
    remaining: span,
    notice: {
      ...anything,
      description: 'Present if the permit was asked back: by whom, and how much time is left.',
    },
  },
  'notice',
)

export const POOLS: readonly Route[] = [
  {
    method: 'PUT',
    path: '/v1/pools/{pool}',
    id: 'definePool',
    group: 'Pools',
    title: 'Define a pool',
    about: 'The same definition is accepted again. A different one needs `replace`.',
    params: { pool },
    query: { replace: { schema: flag, about: 'Replaces the definition.' } },
    body: {
      schema: definition,
      example: {
        resources: [
          { name: 'gpu-0', memory: 80 },
          { name: 'gpu-1', memory: 40 },
        ],
      },
    },
    answer: { status: 200, about: 'The status of the pool.', schema: status },
    handle: define,
  },
  {
    method: 'GET',
    path: '/v1/pools/{pool}',
    id: 'poolStatus',
    group: 'Pools',
    title: 'Read the status of a pool: holders, queue and forecasts',
    params: { pool },
    answer: { status: 200, about: 'The status of the pool.', schema: status },
    problems: [404],
    handle: async (call) => (await poolOf(call, await call.session())).status(),
  },
  {
    method: 'POST',
    path: '/v1/pools/{pool}/permits',
    id: 'takePermit',
    group: 'Pools',
    title: 'Take resources of a pool',
    about:
      'The permit is held for its `ttl` unless it is extended. Closing the connection while it waits leaves the queue.',
    params: { pool },
    query: {
      tenant: { schema: text(), about: 'The tenant.', required: true, example: 'vision' },
      kind: { schema: text(), about: 'The kind of work.', example: 'finetune' },
      where: { schema: text(), about: 'A condition on the resources.', example: 'memory >= 40' },
      count: { schema: whole(1), about: 'How many resources, all or none. Default: 1.' },
      shares: { schema: whole(1), about: 'How many shares of each. Default: all.' },
      priority: { schema: { type: 'integer' }, about: 'Higher comes first within a tenant.' },
      ttl: { schema: duration, about: 'Default: 1h.', example: '10m' },
      wait: waitPart('How long to wait in the queue. Default: no wait.'),
      preemptible: { schema: flag, about: 'Whether a higher priority may ask it back.' },
    },
    answer: { status: 201, about: 'The permit is held.', schema: permit },
    problems: [404, 409],
    handle: take,
  },
  {
    method: 'PUT',
    path: '/v1/pools/{pool}/permits/{lease}',
    id: 'extendPermit',
    group: 'Pools',
    title: 'Extend a permit',
    about: 'The permit has its full ttl again. `notice` is present if it was asked back.',
    params: { pool, lease: leasePart },
    answer: { status: 200, about: 'The permit is still held.', schema: extended },
    problems: [404, 410],
    handle: extend,
  },
  {
    method: 'DELETE',
    path: '/v1/pools/{pool}/permits/{lease}',
    id: 'returnPermit',
    group: 'Pools',
    title: 'Return a permit',
    params: { pool, lease: leasePart },
    answer: { status: 200, about: 'The permit is returned.', schema: answered({ ended: flag }) },
    problems: [404, 410],
    handle: returnPermit,
  },
]

/** Uses its own client: a refused definition must not stay in the shared one. */
async function define(call: Call): Promise<unknown> {
  const name = call.params['pool']!
  const wanted = call.body as PoolDefinition
  // Refuse a caller that may not see the pool before anything changes.
  const prefix = `pool/${name}/`
  await call.store.read({ prefix, limit: 1 })
  call.store.watch({ prefix }, () => {}).close()
  return call.leasehold(async (leasehold) => {
    const { replace }: { replace?: boolean } = call.query
    if (replace) await leasehold.pool(name).redefine(wanted)
    return leasehold.pool(name, replace ? undefined : wanted).status()
  })
}

/** Opens a pool only if it is defined: others would be watched for nothing. */
async function poolOf({ store, params }: Call, { leasehold }: PrincipalSession): Promise<Pool> {
  const name = params['pool']!
  const { count } = await store.read({ key: `pool/${name}/definition`, limit: 1 })
  if (count > 0) return leasehold.pool(name)
  throw new LeaseholdError(
    'claim-not-found',
    `pool ${show(name)} is not defined: define it with PUT /v1/pools/${name}`,
  )
}

type PermitRequest = Omit<TakeOptions, 'ttl' | 'wait' | 'signal' | 'grace' | 'strategy'>

async function take(call: Call): Promise<unknown> {
  const {
    ttl: given,
    wait: _,
    ...wanted
  }: PermitRequest & { ttl?: string; wait?: string } = call.query as never
  const ttl = durationOf('ttl', given ?? DEFAULT_TTL)
  const wait = waitOf(call)
  const session = await call.session()
  const found = await poolOf(call, session)
  const taken = await takePermit(found, { ...wanted, ttl }, wait, call.signal)
  if (call.gone) {
    await taken[Symbol.asyncDispose]()
    throw goneError()
  }
  session.keep(taken)
  if (!taken.held) throw new LeaseholdError('closed', 'the server is stopping; ask again')
  const { lease, token, resources, keys, tenant, kind } = taken
  return { lease, token, resources, keys, tenant, kind, remaining: taken.remaining() }
}

async function takePermit(
  found: Pool,
  options: TakeOptions,
  wait: number,
  signal: AbortSignal,
): Promise<Permit> {
  try {
    if (wait > 0) return await found.take({ ...options, wait, signal })
  } catch (error) {
    // The signal's reason is more useful than the abort itself.
    throw signal.aborted ? signal.reason : NotAvailable.afterWait(error)
  }
  const { permit, why } = await found.tryTake(options)
  if (permit === undefined) throw new NotAvailable('busy', why)
  return permit
}

async function extend(call: Call): Promise<unknown> {
  const { store, params } = call
  const lease = params['lease']!
  const known = (await call.session()).permits.get(lease)
  if (known === undefined) {
    const ttl = await ttlOfPermit(call, lease)
    return { lease, remaining: await renewed(store, lease, ttl) }
  }
  await known.extend()
  const notice = known.notice.aborted ? known.notice.reason : undefined
  return { lease, remaining: known.remaining(), notice }
}

async function returnPermit(call: Call): Promise<unknown> {
  const { store, params } = call
  const lease = params['lease']!
  const session = await call.session()
  const known = session.permits.get(lease)
  session.permits.delete(lease)
  if (known?.held) await known.release()
  else {
    await ttlOfPermit(call, lease)
    await store.revoke({ target: { lease }, why: 'the permit was returned' })
  }
  return { ended: true }
}

/** The ttl of a permit from an earlier server. Its lease must hold a resource of this pool. */
async function ttlOfPermit({ store, params }: Call, id: LeaseId): Promise<number> {
  const { lease, end, claims } = await store.read({ lease: id })
  const prefix = `pool/${params['pool']}/r/`
  if (lease !== undefined && claims.some(({ key }) => key.startsWith(prefix))) return lease.ttl
  if (end !== undefined)
    throw new LeaseholdError('lost', `the permit has ended: ${end.reason}`, end)
  throw new LeaseholdError('lease-not-found', `no permit of ${show(params['pool'])} has this lease`)
}
