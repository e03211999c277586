import { invalid, show } from '../../../port/index.ts'
import {
  keyPart,
  NAME_MAX,
  namesOf,
  numberOf,
  objectOf,
  recordOf,
  stringOf,
} from '../../arguments.ts'
import {
  CHECK_STATUSES,
  type Check,
  type CheckSpec,
  type CheckStatus,
  checkOf,
  parseCheck,
} from '../check/check.ts'

/** How an instance of a service describes itself. Everything is optional and limited in size. */
export interface InstanceSpec {
  /** Its address: `10.0.0.7:8080`, `https://embed-3.example`, whatever its clients need. */
  readonly address?: string | undefined
  /** More addresses by name, such as `{ metrics: 'http://10.0.0.7:9090' }`. */
  readonly endpoints?: Readonly<Record<string, string>> | undefined
  /** What it can do. Filters can ask for capabilities. */
  readonly capabilities?: readonly string[] | undefined
  readonly tags?: readonly string[] | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** How much work it should get compared with others; 0 for none. Default: 1. */
  readonly weight?: number | undefined
  /** Where it runs, for callers that prefer nearby instances. */
  readonly zone?: string | undefined
  readonly check?: CheckSpec | undefined
}

/** What an instance reports about its own health. */
export interface Report {
  readonly status: CheckStatus
  readonly note?: string | undefined
  /** Counts the reports, so that each is noticed even if it is unchanged. */
  readonly count: number
}

/** The content of an instance's claim: complete, checked and limited in size. */
export interface Description {
  readonly address?: string | undefined
  readonly endpoints: Readonly<Record<string, string>>
  readonly capabilities: readonly string[]
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, string>>
  readonly weight: number
  readonly zone?: string | undefined
  /** The node that it runs on. It ends with the node. */
  readonly node?: string | undefined
  readonly check?: Check | undefined
  readonly report?: Report | undefined
  /** The reason for maintenance, while it is in maintenance. */
  readonly maintenance?: string | undefined
  /** How busy it is, in its own unit: only compared within its service. */
  readonly load?: number | undefined
}

/** What may change without a new description. */
export interface Condition {
  readonly node?: string | undefined
  readonly report?: Report | undefined
  readonly maintenance?: string | undefined
  readonly load?: number | undefined
}

const ADDRESS_MAX = 512
const METADATA_MAX = 1024
export const NOTE_MAX = 256
const BYTES_MAX = 32 * 1024
const WEIGHT_MAX = 1e6
const LOAD_MAX = 1e15

/** Checks and completes a description. Throws an error that names the invalid field. */
export function describe(spec: InstanceSpec, condition: Condition = {}): Description {
  objectOf('the registration', spec)
  const { check, address } = spec
  const own = checkedFields(spec, condition)
  return check === undefined ? own : { ...own, check: checkOf(check, address) }
}

/** The value of an instance's claim. */
export function descriptionJson(description: Description): string {
  const json = JSON.stringify(description)
  // Stores have different limits; this one is the same everywhere.
  const bytes = new TextEncoder().encode(json).length
  if (bytes <= BYTES_MAX) return json
  throw invalid(
    `the registration has ${bytes} bytes, and the limit is ${BYTES_MAX}. Give less metadata`,
  )
}

/**
 * Parses the value of a claim. Returns `undefined` if it is invalid: anybody who may claim keys can
 * write anything there, and one bad entry must not affect the others.
 */
export function parseDescription(json: string | undefined): Description | undefined {
  if (json === undefined || json.length > BYTES_MAX) return undefined
  try {
    const given = objectOf('the entry', JSON.parse(json))
    const own = checkedFields(given as InstanceSpec, given as Condition)
    return given['check'] === undefined ? own : { ...own, check: parseCheck(given['check']) }
  } catch {
    return undefined
  }
}

function checkedFields(spec: InstanceSpec, condition: Condition): Description {
  const { address, endpoints, capabilities, tags, metadata, weight, zone } = spec
  const { node, report, maintenance, load } = condition
  return {
    address: address === undefined ? undefined : stringOf('address', address, ADDRESS_MAX),
    endpoints: recordOf('endpoints', endpoints, ADDRESS_MAX),
    capabilities: namesOf('capabilities', capabilities),
    tags: namesOf('tags', tags),
    metadata: recordOf('metadata', metadata, METADATA_MAX),
    weight: weight === undefined ? 1 : numberOf('weight', weight, 0, WEIGHT_MAX),
    zone: zone === undefined ? undefined : stringOf('zone', zone, NAME_MAX),
    node: node === undefined ? undefined : keyPart('node', node),
    report: report === undefined ? undefined : parseReport(report),
    maintenance: maintenance === undefined ? undefined : noteOf('maintenance', maintenance),
    load: load === undefined ? undefined : numberOf('load', load, 0, LOAD_MAX),
  }
}

function parseReport({ status, note, count }: Report): Report {
  if (!CHECK_STATUSES.includes(status)) {
    throw invalid(`status is ${show(status)}: it must be 'passing', 'warning' or 'critical'`)
  }
  return {
    status,
    note: note === undefined ? undefined : noteOf('note', note),
    count: numberOf('count', count, 0, Number.MAX_SAFE_INTEGER),
  }
}

function noteOf(name: string, value: unknown): string {
  return value === '' ? '' : stringOf(name, value, NOTE_MAX)
}
