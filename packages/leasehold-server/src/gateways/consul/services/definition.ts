import { type Call, ConsulError, decodeFailed, fieldsOf, jsonBody, lowered } from '../answer.ts'
import { type Fields, parseCheck, STATUSES, type StoredCheck, textOf } from './check.ts'

export interface Weights {
  readonly Passing: number
  readonly Warning: number
}

export type TaggedAddresses = Readonly<
  Record<string, { readonly Address: string; readonly Port: number }>
>

/** A service as a client registers it. */
export interface ServiceDefinition {
  readonly id: string
  readonly name: string
  readonly tags: readonly string[]
  readonly address: string
  readonly port: number
  readonly meta: Readonly<Record<string, string>>
  readonly weights: Weights
  readonly enableTagOverride: boolean
  readonly taggedAddresses: TaggedAddresses
  readonly checks: readonly StoredCheck[]
}

const WEIGHT_MAX = 65_535
const ANY_ADDRESSES = ['0.0.0.0', '::', '[::]']
/** The fields of Connect. A proxy that is registered and never configured would pass no traffic. */
const CONNECT_FIELDS = ['kind', 'proxy', 'connect', 'socketpath']

/** The body of `agent/service/register`. */
export function parseService(call: Call): ServiceDefinition {
  const body = jsonBody(call)
  const name = textOf(body['name'])
  if (name === '') throw new ConsulError(400, 'Missing service name')
  const address = textOf(body['address'])
  if (ANY_ADDRESSES.includes(address)) throw new ConsulError(400, 'Invalid service address')
  const connect = CONNECT_FIELDS.find((field) => body[field])
  if (connect !== undefined) {
    throw new ConsulError(
      501,
      `Leasehold has no ${connect} of services: see its table of differences`,
    )
  }
  const id = textOf(body['id']) || name
  return {
    ...{ id, name, address },
    tags: textsOf(body['tags']),
    port: typeof body['port'] === 'number' ? body['port'] : 0,
    meta: metaOf(body['meta']),
    weights: weightsOf(body['weights']),
    enableTagOverride: body['enabletagoverride'] === true,
    taggedAddresses: taggedAddressesOf(body['taggedaddresses'] ?? body['tagged_addresses']),
    checks: checksOf(body, id, name),
  }
}

/** The body of `agent/check/register`, and the service that it names. */
export function parseCheckRegistration(call: Call): {
  readonly serviceId: string
  readonly check: StoredCheck
} {
  const body = jsonBody(call)
  const name = textOf(body['name'])
  if (name === '') throw new ConsulError(400, 'Missing check name')
  const { status } = body
  if (status && !STATUSES.includes(status)) throw new ConsulError(400, 'Bad check status')
  const check = parseCheck(body, { id: name, name }, '0s')
  return { serviceId: textOf(body['serviceid'] ?? body['service_id']), check }
}

function checksOf(body: Fields, id: string, name: string): readonly StoredCheck[] {
  const single = lowered(body['check'])
  const list = Array.isArray(body['checks']) ? (body['checks'] as unknown[]) : []
  const given = [...(isEmpty(single) ? [] : [single]), ...list]
  return given.map((each, at) => {
    const ownId = given.length > 1 ? `service:${id}:${at + 1}` : `service:${id}`
    return parseCheck(each, { id: ownId, name: `Service '${name}' check` }, '')
  })
}

function isEmpty(value: unknown): boolean {
  return typeof value !== 'object' || value === null || Object.keys(value).length === 0
}

function textsOf(value: unknown): readonly string[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value
  throw decodeFailed('Tags must be a list of strings')
}

function metaOf(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null) return {}
  const entries = Object.entries(value)
  for (const [key, each] of entries) {
    if (typeof each !== 'string') throw decodeFailed('Meta must have strings as values')
    const refuse = (why: string) => {
      const pair = `Couldn't load metadata pair ('${key}', '${each}')`
      return new ConsulError(400, `Invalid Service Meta: ${pair}: ${why}`)
    }
    if (key === '') throw refuse('Key cannot be blank')
    if (!/^[a-zA-Z0-9_-]+$/.test(key)) throw refuse('Key contains invalid characters')
    if (key.startsWith('consul-')) {
      throw refuse("Key prefix 'consul-' is reserved for internal use")
    }
  }
  return Object.fromEntries(entries)
}

function weightsOf(value: unknown): Weights {
  if (typeof value !== 'object' || value === null) return { Passing: 1, Warning: 1 }
  const { passing = 0, warning = 0 } = lowered(value) as Record<string, unknown>
  if (!Number.isInteger(passing) || !Number.isInteger(warning)) {
    throw decodeFailed('Weights must be whole numbers')
  }
  return checkedWeights({ Passing: passing as number, Warning: warning as number })
}

function checkedWeights(weights: Weights): Weights {
  const { Passing: passing, Warning: warning } = weights
  const refuse = (why: string) => new ConsulError(400, `Invalid Weights: ${why}`)
  if (passing < 1) throw refuse('Passing must be greater than 0')
  if (warning < 0) throw refuse('Warning must be greater or equal than 0')
  if (Math.max(passing, warning) > WEIGHT_MAX) {
    throw refuse(`DNS Weight must be between 0 and ${WEIGHT_MAX}`)
  }
  return weights
}

function taggedAddressesOf(value: unknown): TaggedAddresses {
  if (typeof value !== 'object' || value === null) return {}
  const entries = Object.entries(value).map(([name, each]) => {
    const { address, port } = fieldsOf(each, 'each of TaggedAddresses')
    return [name, { Address: textOf(address), Port: typeof port === 'number' ? port : 0 }]
  })
  return Object.fromEntries(entries) as TaggedAddresses
}
