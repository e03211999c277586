import type { Key, Revision } from 'leasehold/port'
import { type LeaseStorage, PREFIX, type Version } from './lease-storage.ts'
import { nameIn, type Selector, selectorOf } from './selectors.ts'
import { badRequest, expired } from './status.ts'

/** The parameters of a list or a watch. */
export interface LeaseQuery {
  readonly prefix: string
  /** Set if the query is for one object: the right to its key is enough then. */
  readonly key: Key | undefined
  readonly selector: Selector
  readonly limit: number | undefined
  readonly next: Continuation | undefined
  /** From which version to watch; `undefined` to begin with all objects. */
  readonly from: Revision | undefined
  readonly watches: boolean
  readonly bookmarks: boolean
  readonly marksInitial: boolean
  readonly timeout: number
}

/** Where a list goes on: after this key. The revision is that of its first page. */
interface Continuation {
  readonly revision: Revision
  readonly after: Key
}

const SECOND_MS = 1000
const TIMEOUT_SECONDS = 1800
const TIMEOUT_SECONDS_MAX = 3600
const LIMIT_MAX = 10_000

/** Reads the parameters. `namespace` is `undefined` for all namespaces. */
export function readQuery(query: unknown, namespace: string | undefined): LeaseQuery {
  const given = parametersOf(query)
  const { fieldSelector, labelSelector } = given
  const prefix = namespace === undefined ? PREFIX : `${PREFIX}${namespace}/`
  const name = namespace === undefined ? undefined : nameIn(fieldSelector)
  const marksInitial = given['sendInitialEvents'] === 'true'
  if (given['resourceVersionMatch'] === 'Exact') {
    throw badRequest('resourceVersionMatch=Exact is not supported: old versions are not kept')
  }
  const limit = integer(given, 'limit', LIMIT_MAX)
  const timeout = integer(given, 'timeoutSeconds', Infinity) || TIMEOUT_SECONDS
  return {
    prefix,
    key: name === undefined ? undefined : prefix + name,
    selector: selectorOf(fieldSelector, labelSelector),
    limit: limit === 0 ? undefined : limit,
    next: continuationOf(given['continue'], prefix),
    from: marksInitial ? undefined : integer(given, 'resourceVersion', Infinity) || undefined,
    watches: isTrue(given['watch']),
    bookmarks: isTrue(given['allowWatchBookmarks']),
    marksInitial,
    timeout: Math.min(timeout, TIMEOUT_SECONDS_MAX) * SECOND_MS,
  }
}

/** All parameters that were given once. */
export function parametersOf(query: unknown): Readonly<Record<string, string | undefined>> & {
  readonly fieldSelector?: string
  readonly labelSelector?: string
} {
  const entries = Object.entries(query as Record<string, unknown>)
  for (const [name, value] of entries) {
    if (typeof value !== 'string') throw badRequest(`${name.slice(0, 64)} is given twice`)
  }
  return Object.fromEntries(entries) as Record<string, string>
}

/** Some of the objects that a query selects. */
export interface LeasePage {
  readonly versions: readonly Version[]
  /** When this page was read. */
  readonly readAt: Revision
  /** Set if there is more: the last key of this page. */
  readonly next: Key | undefined
}

/** The objects that a query selects, in pages of at most its limit. */
export async function* leasePages(
  storage: LeaseStorage,
  { prefix, key, selector, limit, next }: LeaseQuery,
): AsyncGenerator<LeasePage> {
  let after = next?.after
  do {
    const page =
      key === undefined ? await storage.list(prefix, after, limit) : await storage.listOne(key)
    const versions = page.versions.filter(({ stored }) => selector(stored.metadata))
    after = page.next
    yield { versions, readAt: page.revision, next: after }
  } while (after !== undefined)
}

/**
 * The objects that a query selects, up to its limit, and how to go on. A list of several pages has
 * the revision of the first one: a watch from there reports what changed meanwhile.
 */
export async function listLeases(storage: LeaseStorage, query: LeaseQuery) {
  const found: Version[] = []
  let revision = query.next?.revision
  let after: Key | undefined
  for await (const { versions, readAt, next } of leasePages(storage, query)) {
    revision ??= readAt
    found.push(...versions)
    after = next
    if (query.limit !== undefined) break
  }
  const token = after === undefined ? undefined : writeContinuation({ revision: revision!, after })
  return { revision: revision!, versions: found, continue: token }
}

function writeContinuation(continuation: Continuation): string {
  return Buffer.from(JSON.stringify(continuation)).toString('base64url')
}

function continuationOf(token: string | undefined, prefix: string): Continuation | undefined {
  if (token === undefined || token === '') return undefined
  try {
    const { revision, after } = JSON.parse(Buffer.from(token, 'base64url').toString())
    const isOurs = Number.isSafeInteger(revision) && String(after).startsWith(prefix)
    if (isOurs) return { revision, after }
  } catch {
    // The same answer fits a token that cannot be parsed.
  }
  throw expired()
}

function integer(given: Readonly<Record<string, string | undefined>>, name: string, max: number) {
  const value = given[name]
  if (value === undefined || value === '') return undefined
  const number = Number(value)
  if (/^\d{1,16}$/.test(value) && Number.isSafeInteger(number)) return Math.min(number, max)
  throw badRequest(`${name} is "${value.slice(0, 32)}": it must be an integer, 0 or more`)
}

function isTrue(value: string | undefined): boolean {
  return value === 'true' || value === '1'
}
