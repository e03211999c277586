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

/** What an instance of a service says of itself. Everything is optional and bounded. */
export interface InstanceSpec {
  /** Where it is reached: `10.0.0.7:8080`, `https://embed-3.example`, whatever its clients need. */
  readonly address?: string | undefined
  /** Further addresses by name, such as `{ metrics: 'http://10.0.0.7:9090' }`. */
  readonly endpoints?: Readonly<Record<string, string>> | undefined
  /** What it can do: whoever needs all of some capabilities finds it by them. */
  readonly capabilities?: readonly string[] | undefined
  readonly tags?: readonly string[] | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** How much of the work it should get compared with others. 1 if not given, 0 for none. */
  readonly weight?: number | undefined
  /** Where it runs, for callers that prefer what is near. */
  readonly zone?: string | undefined
  readonly check?: CheckSpec | undefined
}

/** What an instance reports of its own health. */
export interface Report {
  readonly status: CheckStatus
  readonly note?: string | undefined
  /** Counts the reports, so that each is seen even if it says the same. */
  readonly count: number
}

/** What an instance's claim says: complete, checked, and within bounds. */
export interface Description {
  readonly address?: string | undefined
  readonly endpoints: Readonly<Record<string, string>>
  readonly capabilities: readonly string[]
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, string>>
  readonly weight: number
  readonly zone?: string | undefined
  /** The node that it runs on and ends with. */
  readonly node?: string | undefined
  readonly check?: Check | undefined
  readonly report?: Report | undefined
  /** Why it is in maintenance, where it is. */
  readonly maintenance?: string | undefined
  /** How busy it is, in a unit of its own: only compared with others of its service. */
  readonly load?: number | undefined
}

/** What may change without the instance describing itself anew. */
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

/** The description of an instance in its condition. Refuses what is wrong, naming it. */
export function describe(spec: InstanceSpec, condition: Condition = {}): Description {
  objectOf('the registration', spec)
  const { check, address } = spec
  const own = checkedFields(spec, condition)
  return check === undefined ? own : { ...own, check: checkOf(check, address) }
}

/** The text of a claim. */
export function descriptionJson(description: Description): string {
  const text = JSON.stringify(description)
  // The store has a limit of its own; this one is the same on every store.
  const bytes = new TextEncoder().encode(text).length
  if (bytes <= BYTES_MAX) return text
  throw invalid(
    `the registration has ${bytes} bytes: at most ${BYTES_MAX} are allowed, so give less metadata`,
  )
}

/**
 * What a claim's text describes, or `undefined` where it describes nothing: anybody who may claim
 * keys can write anything there, and one bad entry must not spoil the others.
 */
export function parseDescription(text: string | undefined): Description | undefined {
  if (text === undefined || text.length > BYTES_MAX) return undefined
  try {
    const given = objectOf('the entry', JSON.parse(text))
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
    throw invalid(
      `status is ${show(status)}: an instance reports 'passing', 'warning' or 'critical'`,
    )
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
