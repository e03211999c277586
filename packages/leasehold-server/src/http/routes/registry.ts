import { type Filter, type InstanceSpec, type InstanceUpdate, servicesKey } from 'leasehold'
import {
  type Claim,
  invalid,
  type Key,
  LeaseholdError,
  type LeaseId,
  sha256,
  show,
} from 'leasehold/port'
import { renewed, stillHeld } from '../requests/waits.ts'
import { NotAvailable } from '../responses/problem.ts'
import type { Call, Parameter, Route } from '../route.ts'
import { durationOf } from './durations.ts'
import {
  answered,
  duration,
  flag,
  given,
  holderPart,
  leasePart,
  list,
  named,
  record,
  span,
  text,
  texts,
  time,
  whole,
} from './schemas.ts'

const DEFAULT_TTL = '15s'
const CHECK_STATUSES = ['passing', 'warning', 'critical']
const STATUSES = [...CHECK_STATUSES, 'lapsed', 'maintenance']

const service: Parameter = {
  schema: text(),
  about: 'The service.',
  required: true,
  example: 'embedder',
}
const instance: Parameter = {
  schema: text(),
  about: 'The instance.',
  required: true,
  example: 'i-1',
}

const check = given({
  http: text('A path such as /health, or a complete URL.'),
  tcp: { type: ['string', 'boolean'] },
  grpc: { type: ['string', 'boolean'] },
  ttl: duration,
  every: duration,
  timeout: duration,
  down: whole(1),
  up: whole(1),
  onCritical: { enum: ['leave', 'revoke'] },
  initially: { enum: CHECK_STATUSES },
})

const spec = given({
  address: text('The address of the instance.'),
  endpoints: record,
  capabilities: texts,
  tags: texts,
  metadata: record,
  weight: { type: 'number' },
  zone: text(),
  check,
})

const found = answered(
  {
    service: text(),
    id: text(),
    status: { enum: STATUSES },
    note: text(),
    address: text(),
    endpoints: record,
    capabilities: list(text()),
    tags: list(text()),
    metadata: record,
    weight: { type: 'number' },
    zone: text(),
    load: { type: 'number' },
    node: text(),
    holder: text(),
    lease: text(),
    token: whole(1),
    since: time,
  },
  ...['note', 'address', 'zone', 'load', 'node'],
)

const registered = answered({
  service: text(),
  id: text(),
  key: text(),
  lease: text('Keep it secret: anyone who has it can renew and end the registration.'),
  token: whole(1),
  remaining: span,
})

export const REGISTRY: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/services',
    id: 'listServices',
    group: 'Registry',
    title: 'List the services with instances',
    answer: { status: 200, about: 'Their names.', schema: answered({ services: list(text()) }) },
    handle: (call) =>
      call.leasehold(async ({ registry }) => ({ services: await registry.services() })),
  },
  {
    method: 'GET',
    path: '/v1/services/{service}',
    id: 'findInstances',
    group: 'Registry',
    title: 'Find the instances of a service',
    params: { service },
    query: {
      capability: {
        schema: texts,
        about: 'A required capability; repeat it for several.',
        example: ['embed'],
      },
      tag: { schema: texts, about: 'A required tag; repeat it for several.' },
      zone: { schema: text(), about: 'The required zone.' },
      status: {
        schema: { type: 'array', items: { enum: [...STATUSES, 'any'] } },
        about: 'Default: `passing` and `warning`; `any` for all.',
      },
    },
    answer: {
      status: 200,
      about: 'The instances, sorted by id.',
      schema: answered({ instances: list(found) }),
    },
    handle: find,
  },
  {
    method: 'POST',
    path: '/v1/services/{service}',
    id: 'registerInstance',
    group: 'Registry',
    title: 'Register an instance',
    about: 'It is found until its ttl ends. Renew it with PUT, for example every third of the ttl.',
    params: { service },
    query: {
      id: { ...instance, required: false, about: 'Default: random.' },
      ttl: { schema: duration, about: 'Default: 15s.', example: '15s' },
      holder: holderPart,
    },
    body: {
      schema: spec,
      example: { address: '10.0.0.7:8080', capabilities: ['embed'], check: { ttl: '30s' } },
    },
    answer: { status: 201, about: 'The instance is registered.', schema: registered },
    problems: [409],
    repeatable: true,
    handle: register,
  },
  {
    method: 'PUT',
    path: '/v1/services/{service}/{instance}',
    id: 'keepInstance',
    group: 'Registry',
    title: 'Renew an instance and report its health',
    about: 'The heartbeat of the instance. A ttl check needs a `status` in time.',
    params: { service, instance },
    query: {
      lease: leasePart,
      status: { schema: { enum: CHECK_STATUSES }, about: 'Its health.', example: 'passing' },
      note: { schema: text(), about: 'The reason for the status, for people.' },
      load: { schema: { type: 'number' }, about: 'Its load, relative to other instances.' },
      maintenance: {
        schema: text(),
        about: 'Takes it out of use, with this reason; `off` returns it.',
      },
    },
    answer: {
      status: 200,
      about: 'The registration has its full ttl again.',
      schema: named('Kept'),
    },
    problems: [404, 410],
    handle: keep,
  },
  {
    method: 'DELETE',
    path: '/v1/services/{service}/{instance}',
    id: 'deregisterInstance',
    group: 'Registry',
    title: 'Deregister an instance',
    params: { service, instance },
    query: { lease: leasePart },
    answer: {
      status: 200,
      about: 'The instance is deregistered.',
      schema: answered({ ended: flag }),
    },
    problems: [404, 410],
    handle: deregister,
  },
]

async function find(call: Call): Promise<unknown> {
  const { capability, tag: tags, zone, status }: Record<string, never> = call.query
  const all = (status as readonly string[] | undefined)?.includes('any')
  const filter = { capability, tags, zone, status: all ? 'any' : status } as Filter
  const wanted = call.params['service']!
  return call.leasehold(async ({ registry }) => ({
    instances: await registry.find(wanted, filter),
  }))
}

async function register(call: Call): Promise<unknown> {
  const { store, serverActions, principal, request, random } = call
  const given: { id?: string; ttl?: string; holder?: string } = call.query
  // A repeated request has the id of the first.
  const newId = request === undefined ? random.id() : sha256(request)
  const { id = newId.slice(0, 12), holder = principal.name } = given
  const name = call.params['service']!
  const ttl = durationOf('ttl', given.ttl ?? DEFAULT_TTL)
  const { key, value, labels } = await call.leasehold(async ({ registry }) =>
    registry.entry(name, id, call.body as InstanceSpec),
  )
  const wanted = { holder, ttl, labels, claims: [{ key, value }], ifFree: true, request }
  const granted = await store.grant(wanted)
  if (granted.outcome === 'busy') throw NotAvailable.from(granted)
  const { lease, token } = granted
  const remaining = request === undefined ? ttl : await stillHeld(serverActions, granted, [key])
  return { service: name, id, key, lease, token, remaining }
}

interface KeepQuery extends InstanceUpdate {
  readonly lease: LeaseId
  readonly maintenance?: string
}

async function keep(call: Call): Promise<unknown> {
  const { store, params, query } = call
  const { lease, status, note, load, maintenance }: KeepQuery = query as never
  const isReport = status !== undefined || load !== undefined || maintenance !== undefined
  if (!isReport && note !== undefined) {
    throw invalid(
      `note is ${show(note)}, but ${show(params['instance'])} reports no status: use both`,
    )
  }
  const { key, ttl, claim } = await registration(call)
  const remaining = await renewed(store, lease, ttl)
  if (isReport) {
    const report = {
      status,
      note,
      load,
      maintenance: maintenance === 'off' ? false : maintenance,
    } as const
    const value = await call.leasehold(async ({ registry }) =>
      registry.amended(claim.value, report),
    )
    await store.update({ lease, key, token: claim.token, value })
  }
  return { lease, remaining }
}

async function deregister(call: Call): Promise<unknown> {
  await registration(call)
  const lease: LeaseId = call.query['lease']!
  await call.store.revoke({ target: { lease }, why: 'taken out of the registry' })
  return { ended: true }
}

interface Found {
  readonly key: Key
  readonly ttl: number
  readonly claim: Claim
}

/** The claim of the instance under this lease. Another lease must not be renewed by its name. */
async function registration({ store, params, query }: Call): Promise<Found> {
  const key = servicesKey(params['service']!, params['instance'])
  const { lease, end, claims } = await store.read({ lease: query['lease']! })
  const claim = claims.find((one) => one.key === key)
  if (claim !== undefined) return { key, ttl: lease!.ttl, claim }
  if (end !== undefined) {
    throw new LeaseholdError('lost', `the registration has ended: ${end.reason}`, end)
  }
  const code = lease === undefined ? 'lease-not-found' : 'claim-not-found'
  throw new LeaseholdError(
    code,
    `this lease is not the registration of ${show(key)}: register again`,
  )
}
