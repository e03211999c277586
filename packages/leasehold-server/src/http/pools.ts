import type { Permit, Pool, PoolDefinition, TakeOptions } from 'leasehold'
import { LeaseholdError, type LeaseId, show } from 'leasehold/port'
import { goneError } from './call.ts'
import type { Office } from './office.ts'
import { NotHad } from './problem.ts'
import type { Call, Parameter, Route } from './route.ts'
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
import { durationOf, waitOf } from './values.ts'
import { renewed } from './waiting.ts'

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
  line: list(
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
  lease: text('Keep it secret: whoever has it can extend and return the permit.'),
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
      description: 'Somebody has asked for it back: who, and how long there is.',
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
    title: 'Defines a pool',
    about:
      'The same definition may be given again. Another one is refused unless `replace` is true.',
    params: { pool },
    query: { replace: { schema: flag, about: 'Takes the place of what is defined.' } },
    body: {
      schema: definition,
      example: {
        resources: [
          { name: 'gpu-0', memory: 80 },
          { name: 'gpu-1', memory: 40 },
        ],
      },
    },
    answer: { status: 200, about: 'As it stands.', schema: status },
    handle: define,
  },
  {
    method: 'GET',
    path: '/v1/pools/{pool}',
    id: 'poolStatus',
    group: 'Pools',
    title: 'Tells who holds what, who waits, and how long that will take',
    params: { pool },
    answer: { status: 200, about: 'As it stands.', schema: status },
    problems: [404],
    handle: async (call) => (await poolOf(call, await call.office())).status(),
  },
  {
    method: 'POST',
    path: '/v1/pools/{pool}/permits',
    id: 'takePermit',
    group: 'Pools',
    title: 'Takes resources of a pool',
    about:
      'A reservation: it is held for its `ttl` and no longer, unless it is extended. Who closes the connection while it waits has left the line.',
    params: { pool },
    query: {
      tenant: { schema: text(), about: 'For whom.', required: true, example: 'vision' },
      kind: { schema: text(), about: 'What kind of work it is for.', example: 'finetune' },
      where: { schema: text(), about: 'Which will do.', example: 'memory >= 40' },
      count: { schema: whole(1), about: 'How many, all or none. 1 if not given.' },
      shares: { schema: whole(1), about: 'How many shares of each. The whole if not given.' },
      priority: { schema: { type: 'integer' }, about: 'Higher is served first in its tenant.' },
      ttl: { schema: duration, about: 'An hour if not given.', example: '10m' },
      wait: waitPart('How long to wait in line. Not at all if not given.'),
      preemptible: { schema: flag, about: 'It may be asked back for a higher priority.' },
    },
    answer: { status: 201, about: 'It is held.', schema: permit },
    problems: [404, 409],
    handle: take,
  },
  {
    method: 'PUT',
    path: '/v1/pools/{pool}/permits/{lease}',
    id: 'extendPermit',
    group: 'Pools',
    title: 'Extends a permit',
    about: 'It has its full ttl again. Tells in `notice` where somebody has asked for it back.',
    params: { pool, lease: leasePart },
    answer: { status: 200, about: 'It is still held.', schema: extended },
    problems: [404, 410],
    handle: extend,
  },
  {
    method: 'DELETE',
    path: '/v1/pools/{pool}/permits/{lease}',
    id: 'returnPermit',
    group: 'Pools',
    title: 'Returns a permit',
    params: { pool, lease: leasePart },
    answer: { status: 200, about: 'It is free for the next.', schema: answered({ ended: flag }) },
    problems: [404, 410],
    handle: giveBack,
  },
]

/** By a client of its own: a definition that is refused must not stick to the shared one. */
async function define(call: Call): Promise<unknown> {
  const name = call.params['pool']!
  const wanted = call.body as PoolDefinition
  // Before anything is changed: a caller that may not see the pool is refused.
  const prefix = `pool/${name}/`
  await call.store.read({ prefix, limit: 1 })
  call.store.watch({ prefix }, () => {}).close()
  return call.leasehold(async (leasehold) => {
    const { replace }: { replace?: boolean } = call.query
    if (replace) await leasehold.pool(name).redefine(wanted)
    return leasehold.pool(name, replace ? undefined : wanted).status()
  })
}

/** Only a pool that is defined is looked at from now on: others would be looked at for nothing. */
async function poolOf({ store, params }: Call, { leasehold }: Office): Promise<Pool> {
  const name = params['pool']!
  const { count } = await store.read({ key: `pool/${name}/definition`, limit: 1 })
  if (count > 0) return leasehold.pool(name)
  throw new LeaseholdError(
    'claim-not-found',
    `pool ${show(name)} is not defined: define it with PUT /v1/pools/${name}`,
  )
}

type Wish = Omit<TakeOptions, 'ttl' | 'wait' | 'signal' | 'grace' | 'strategy'>

async function take(call: Call): Promise<unknown> {
  const {
    ttl: given,
    wait: _,
    ...wish
  }: Wish & { ttl?: string; wait?: string } = call.query as never
  const ttl = durationOf('ttl', given ?? DEFAULT_TTL)
  const wait = waitOf(call)
  const office = await call.office()
  const found = await poolOf(call, office)
  const taken = await taking(found, { ...wish, ttl }, wait, call.signal)
  if (call.gone) {
    await taken[Symbol.asyncDispose]()
    throw goneError()
  }
  office.keep(taken)
  if (!taken.held) throw new LeaseholdError('closed', 'the server stops: ask again')
  const { lease, token, resources, keys, tenant, kind } = taken
  return { lease, token, resources, keys, tenant, kind, remaining: taken.remaining() }
}

async function taking(
  found: Pool,
  options: TakeOptions,
  wait: number,
  signal: AbortSignal,
): Promise<Permit> {
  try {
    if (wait > 0) return await found.take({ ...options, wait, signal })
  } catch (error) {
    // Why it was aborted says more than that it was.
    throw signal.aborted ? signal.reason : error
  }
  const { permit, why } = await found.tryTake(options)
  if (permit === undefined) throw new NotHad('busy', why)
  return permit
}

async function extend(call: Call): Promise<unknown> {
  const { store, params } = call
  const lease = params['lease']!
  const known = (await call.office()).permits.get(lease)
  if (known === undefined) {
    const ttl = await ttlOfPermit(call, lease)
    return { lease, remaining: await renewed(store, lease, ttl) }
  }
  await known.extend()
  const notice = known.notice.aborted ? known.notice.reason : undefined
  return { lease, remaining: known.remaining(), notice }
}

async function giveBack(call: Call): Promise<unknown> {
  const { store, params } = call
  const lease = params['lease']!
  const office = await call.office()
  const known = office.permits.get(lease)
  office.permits.delete(lease)
  if (known?.held) await known.release()
  else {
    await ttlOfPermit(call, lease)
    await store.revoke({ target: { lease }, why: 'the permit was returned' })
  }
  return { ended: true }
}

/** Of a permit that an earlier server gave; its lease must have something of this pool. */
async function ttlOfPermit({ store, params }: Call, id: LeaseId): Promise<number> {
  const { lease, end, claims } = await store.read({ lease: id })
  const prefix = `pool/${params['pool']}/r/`
  if (lease !== undefined && claims.some(({ key }) => key.startsWith(prefix))) return lease.ttl
  if (end !== undefined)
    throw new LeaseholdError('lost', `the permit has ended: ${end.reason}`, end)
  throw new LeaseholdError('lease-not-found', `no permit of ${show(params['pool'])} has this lease`)
}
