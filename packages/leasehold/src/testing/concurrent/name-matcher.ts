import type { LeaseId, Revision, Tenure, Token } from '../../port/index.ts'

/** Which times of a store are compared with the model's. */
export type Times = 'all' | 'deadlines' | 'none'

const DEADLINES = new Set(['until', 'endOfLife', 'remaining'])
const PAST = new Set(['at', 'claimedAt', 'heldSince', 'grantedAt', 'renewedAt', 'endedAt'])

/** Two clocks that were moved alike may differ by rounding. */
export const ROUNDING_MS = 0.001

/**
 * Compares what a store returns with what the model returns, and learns which of its leases, tokens
 * and revisions correspond to the model's. The mapping must stay one to one. With `exact`, tokens and
 * revisions must be the same numbers: the store runs the same kernel.
 */
export class NameMatcher {
  times: Times
  readonly #exact: boolean
  readonly #leases = new Pairs<LeaseId>()
  readonly #tokens = new Pairs<Token>()
  readonly #revisions = new Pairs<Revision>()

  constructor(exact: boolean, times: Times) {
    this.#exact = exact
    this.times = times
  }

  /** Where the two differ, or `undefined` if they are equal. */
  difference(actual: unknown, expected: unknown): string | undefined {
    return this.#difference('', inOrder(actual), inOrder(expected))
  }

  /** The argument of a call, with the model's names. */
  translate(value: unknown, field = ''): unknown {
    if (typeof value === 'string' && isLeaseField(field)) return this.#leases.get(value) ?? value
    if (typeof value === 'number' && (field === 'token' || field === 'replaces')) {
      return this.#tokens.get(value) ?? value
    }
    if (typeof value === 'number' && field === 'from') return this.#revisions.get(value) ?? value
    if (Array.isArray(value)) return value.map((each) => this.translate(each, field))
    if (typeof value !== 'object' || value === null) return value
    const fields = Object.entries(value)
    return Object.fromEntries(fields.map(([name, each]) => [name, this.translate(each, name)]))
  }

  #difference(field: string, actual: unknown, expected: unknown): string | undefined {
    if (Array.isArray(actual) && Array.isArray(expected)) {
      if (actual.length !== expected.length) return says(field, actual, expected)
      return first(actual, (each, at) => this.#difference(field, each, expected[at]))
    }
    if (isObject(actual) && isObject(expected)) {
      const names = [...new Set([...Object.keys(actual), ...Object.keys(expected)])]
      return first(names, (name) => this.#difference(name, actual[name], expected[name]))
    }
    return this.#isSame(field, actual, expected) ? undefined : says(field, actual, expected)
  }

  #isSame(field: string, actual: unknown, expected: unknown): boolean {
    if (DEADLINES.has(field)) return this.times === 'none' || isClose(actual, expected)
    if (PAST.has(field)) return this.times !== 'all' || isClose(actual, expected)
    if (typeof actual === 'string' && typeof expected === 'string' && isLeaseField(field)) {
      if (this.#exact && !Object.is(numberOf(actual), numberOf(expected))) return false
      return this.#leases.join(actual, expected)
    }
    if (typeof actual !== 'number' || typeof expected !== 'number') return actual === expected
    if (field !== 'token' && field !== 'revision') return actual === expected
    // Without a claim there is no token.
    const isNone = field === 'token' && (actual === 0 || expected === 0)
    if (this.#exact || isNone) return actual === expected
    return (field === 'token' ? this.#tokens : this.#revisions).join(actual, expected)
  }
}

/** A one-to-one mapping of names. */
class Pairs<Name> {
  readonly #forth = new Map<Name, Name>()
  readonly #back = new Map<Name, Name>()

  get(name: Name): Name | undefined {
    return this.#forth.get(name)
  }

  join(one: Name, other: Name): boolean {
    const known = this.#forth.get(one)
    if (known !== undefined) return known === other
    if (this.#back.has(other)) return false
    this.#forth.set(one, other)
    this.#back.set(other, one)
    return true
  }
}

function isLeaseField(field: string): boolean {
  return field === 'lease' || field === 'leases' || field === 'id' || field === 'parent'
}

/** The revision at which a lease was granted, which is the last number in its id. */
export function numberOf(lease: LeaseId): number {
  return Number(lease.slice(lease.lastIndexOf('.') + 1))
}

function isClose(actual: unknown, expected: unknown): boolean {
  if (actual === expected) return true
  if (typeof actual !== 'number' || typeof expected !== 'number') return false
  return Math.abs(actual - expected) <= ROUNDING_MS
}

/** Sorts lists without a meaningful order: by token, or by the time of the grant. */
export function inOrder(value: unknown): unknown {
  if (!isObject(value)) return value
  // The claims of a key are ordered; those of a lease are not.
  if (Array.isArray(value['claims']) && !('holders' in value)) {
    return { ...value, claims: byToken(value['claims'] as Tokened[]) }
  }
  if (Array.isArray(value['leases']) && 'more' in value) {
    const leases = value['leases'] as { readonly id: LeaseId }[]
    return { ...value, leases: [...leases].sort((a, b) => numberOf(a.id) - numberOf(b.id)) }
  }
  if (Array.isArray(value['tenures'])) {
    return { ...value, tenures: tenuresInOrder(value['tenures'] as Tenure[]) }
  }
  return value
}

interface Tokened {
  readonly token: Token
  readonly key?: string
}

/** What concerns one claim stays in its order: it was claimed before it held. */
export function byToken<T extends Tokened>(list: readonly T[]): T[] {
  const name = ({ key = '' }: Tokened) => key
  return [...list].sort(
    (a, b) => a.token - b.token || Number(name(a) > name(b)) - Number(name(a) < name(b)),
  )
}

/** Tenures that were ended together by force have no order. */
function tenuresInOrder(tenures: readonly Tenure[]): Tenure[] {
  const groups: Tenure[][] = []
  for (const tenure of tenures) {
    const last = groups.at(-1)
    const isForced = tenure.end.reason !== 'released'
    if (isForced && last && last[0]!.end.reason !== 'released') last.push(tenure)
    else groups.push([tenure])
  }
  return groups.flatMap(byToken)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function first<T>(list: readonly T[], look: (each: T, at: number) => string | undefined) {
  for (const [at, each] of list.entries()) {
    const found = look(each, at)
    if (found !== undefined) return found
  }
  return undefined
}

function says(field: string, actual: unknown, expected: unknown): string {
  return `${field} is ${JSON.stringify(actual)}, and ${JSON.stringify(expected)} in the model`
}
