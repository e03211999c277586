import { badRequest, invalidField, VERSION } from './status.ts'

/** What the store keeps of a Lease. Its resourceVersion is the token of the claim that carries it. */
export interface StoredLease {
  readonly metadata: StoredMetadata
  readonly spec: Readonly<Record<string, unknown>>
}

export interface StoredMetadata {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly creationTimestamp: string
  readonly generateName?: string | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly ownerReferences?: readonly Readonly<Record<string, unknown>>[] | undefined
}

/** A Lease as clients see it. */
export interface LeaseObject {
  readonly apiVersion: typeof VERSION
  readonly kind: 'Lease'
  readonly metadata: StoredMetadata & { readonly resourceVersion: string }
  readonly spec: Readonly<Record<string, unknown>>
}

/** What a client sent: the parts of the object that a client decides. */
export interface GivenLease {
  readonly name: string | undefined
  readonly namespace: string | undefined
  readonly uid: string | undefined
  readonly resourceVersion: string | undefined
  readonly metadata: Pick<
    StoredMetadata,
    'generateName' | 'labels' | 'annotations' | 'ownerReferences'
  >
  readonly spec: Readonly<Record<string, unknown>>
  /** The paths of fields that a Lease does not have. They are dropped. */
  readonly unknown: readonly string[]
}

type Json = Readonly<Record<string, unknown>>

const LABEL_NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const NAME_MAX = 253
const QUALIFIED = /^([a-z0-9.-]{1,253}\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/
const INT32_MAX = 2 ** 31 - 1
const REPORTED_MAX = 10

/** Fields of the metadata that the server decides or does not keep. A client may send them back. */
const IGNORED_METADATA = [
  ...['creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds'],
  ...['generation', 'managedFields', 'selfLink'],
]

/** The check of each field of the spec: returns the value to keep. */
const SPEC: Readonly<Record<string, (value: unknown, fail: Fail) => unknown>> = {
  holderIdentity: stringValue,
  preferredHolder: stringValue,
  strategy: stringValue,
  acquireTime: microTime,
  renewTime: microTime,
  leaseDurationSeconds: (value, fail) => integer(value, 1, fail),
  leaseTransitions: (value, fail) => integer(value, 0, fail),
}
const OWNER = {
  required: ['apiVersion', 'kind', 'name', 'uid'],
  flags: ['controller', 'blockOwnerDeletion'],
}

type Fail = (what: string) => Error

/** Reads what a client sent as a Lease. Throws a `Refusal` that names the field. */
export function readLease(body: unknown): GivenLease {
  const given = objectAt(body, 'the body')
  const { apiVersion, kind, metadata = {}, spec = {}, ...rest } = given
  if ((apiVersion ?? VERSION) !== VERSION || (kind ?? 'Lease') !== 'Lease') {
    throw badRequest(`the body must be a Lease of ${VERSION}`)
  }
  const unknown = Object.keys(rest)
  const meta = readMetadata(objectAt(metadata ?? {}, 'metadata'), unknown)
  const name = meta.name ?? ''
  const fields: Record<string, unknown> = {}
  for (const [field, value] of Object.entries(objectAt(spec ?? {}, 'spec'))) {
    const check = Object.hasOwn(SPEC, field) ? SPEC[field]! : undefined
    if (check === undefined) unknown.push(`spec.${field}`)
    else if (value !== null) {
      fields[field] = check(value, (what) => invalidField(name, `spec.${field}`, what))
    }
  }
  return { ...meta, spec: fields, unknown: unknown.slice(0, REPORTED_MAX) }
}

/** The object as clients see it, at the version that its claim has. */
export function leaseObject({ metadata, spec }: StoredLease, version: number): LeaseObject {
  const resourceVersion = String(version)
  return {
    apiVersion: VERSION,
    kind: 'Lease',
    metadata: { ...metadata, resourceVersion },
    spec,
  }
}

export function checkName(name: string): string {
  if (name.length <= NAME_MAX && NAME.test(name)) return name
  throw invalidField(
    name.slice(0, NAME_MAX),
    'metadata.name',
    `it must have at most ${NAME_MAX} characters: lower case letters, digits, '-' and '.', and begin and end with a letter or digit`,
  )
}

export function checkNamespace(namespace: string): string {
  if (LABEL_NAME.test(namespace)) return namespace
  throw badRequest(
    `namespace "${namespace.slice(0, 63)}" is invalid: use at most 63 lower case letters, digits and '-'`,
  )
}

type GivenMetadata = Omit<GivenLease, 'spec' | 'unknown'>

function readMetadata(metadata: Json, unknown: string[]): GivenMetadata {
  const { name, namespace, uid, resourceVersion, finalizers } = metadata
  const { generateName, labels, annotations, ownerReferences, ...rest } = metadata
  const label = typeof name === 'string' ? name : ''
  const failing = (field: string): Fail => {
    return (what) => invalidField(label.slice(0, NAME_MAX), `metadata.${field}`, what)
  }
  const optional = (field: string, value: unknown): string | undefined =>
    value === undefined || value === null || value === ''
      ? undefined
      : stringValue(value, failing(field))
  if (Array.isArray(finalizers) && finalizers.length > 0) {
    throw failing('finalizers')('finalizers are not supported: a deletion is done at once')
  }
  const known = ['name', 'namespace', 'uid', 'resourceVersion', 'finalizers', ...IGNORED_METADATA]
  for (const field of Object.keys(rest)) {
    if (!known.includes(field)) unknown.push(`metadata.${field}`)
  }
  return {
    name: optional('name', name),
    namespace: optional('namespace', namespace),
    uid: optional('uid', uid),
    resourceVersion: optional('resourceVersion', resourceVersion),
    metadata: {
      generateName: optional('generateName', generateName),
      labels: stringMap(labels, LABEL_VALUE, failing('labels')),
      annotations: stringMap(annotations, undefined, failing('annotations')),
      ownerReferences: owners(ownerReferences, failing('ownerReferences')),
    },
  }
}

function stringMap(
  given: unknown,
  form: RegExp | undefined,
  fail: Fail,
): Readonly<Record<string, string>> | undefined {
  if (given === undefined || given === null) return undefined
  if (typeof given !== 'object' || Array.isArray(given)) throw fail('it must be an object')
  const entries = Object.entries(given)
  for (const [key, value] of entries) {
    if (!QUALIFIED.test(key)) throw fail(`the name "${key.slice(0, NAME_MAX)}" is invalid`)
    const isValid = typeof value === 'string' && (form === undefined || form.test(value))
    if (!isValid) throw fail(`the value of "${key}" is invalid`)
  }
  return entries.length === 0 ? undefined : (given as Record<string, string>)
}

function owners(given: unknown, fail: Fail): StoredMetadata['ownerReferences'] {
  if (given === undefined || given === null) return undefined
  if (!Array.isArray(given)) throw fail('it must be a list')
  const kept = given.map((owner) => {
    const entry = objectAt(owner, 'metadata.ownerReferences')
    const isComplete = OWNER.required.every((field) => typeof entry[field] === 'string')
    if (!isComplete) throw fail(`each needs ${OWNER.required.join(', ')}`)
    const fields = [...OWNER.required, ...OWNER.flags.filter((flag) => entry[flag] !== undefined)]
    return Object.fromEntries(fields.map((field) => [field, entry[field]]))
  })
  return kept.length === 0 ? undefined : kept
}

function objectAt(value: unknown, where: string): Json {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json
  throw badRequest(`${where} must be a JSON object`)
}

function stringValue(value: unknown, fail: Fail): string {
  if (typeof value === 'string') return value
  throw fail('it must be a string')
}

function integer(value: unknown, min: number, fail: Fail): number {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= INT32_MAX) {
    return value as number
  }
  throw fail(`it must be an integer from ${min} to ${INT32_MAX}`)
}

/** Clients in Go read exactly six digits of a second. */
function microTime(value: unknown, fail: Fail): string {
  const [, seconds, fraction = '', zone] = TIME.exec(String(value)) ?? []
  if (seconds === undefined || Number.isNaN(Date.parse(`${seconds}${zone}`))) {
    throw fail("it must be a time such as '2026-01-31T12:00:00.000000Z'")
  }
  return `${seconds}.${fraction.slice(0, 6).padEnd(6, '0')}${zone}`
}
