import { type Answer, type Call, ConsulError } from './answer.ts'
import type { BlockingQueries } from './blocking-queries.ts'
import type { Entries, Entry } from './entries.ts'
import type { Locks } from './locks.ts'
import { ENTRY } from './names.ts'

/** How many keys are deleted at once. */
const DELETED_AT_ONCE = 64

export interface KvParts {
  readonly entries: Entries
  readonly locks: Locks
  readonly blocking: BlockingQueries
}

/** `/v1/kv/…`. */
export function kvRoute(parts: KvParts, call: Call, key: string): Promise<Answer> {
  switch (call.method) {
    case 'GET':
      return call.query.has('keys') || call.query.has('recurse')
        ? list(parts, call, key)
        : get(parts, call, key)
    case 'PUT':
      return put(parts, call, key)
    case 'DELETE':
      return remove(parts, call, key)
    default:
      throw new ConsulError(405, `method ${call.method} not allowed`)
  }
}

async function get({ entries, blocking }: KvParts, call: Call, key: string): Promise<Answer> {
  if (key === '') throw new ConsulError(400, 'Missing key name')
  const watched = { prefix: `${ENTRY}${key}`, exact: true }
  return blocking.answer(call, watched, async (latest) => {
    const entry = await entries.get(key)
    if (entry === undefined) return { status: 404, index: latest, body: '' }
    const index = entry.modifyIndex
    if (!call.query.has('raw')) return { index, body: [describe(entry)] }
    return { index, body: entry.value, type: 'text/plain', isRaw: true }
  })
}

async function list({ entries, blocking }: KvParts, call: Call, prefix: string): Promise<Answer> {
  const watched = { prefix: `${ENTRY}${prefix}`, exact: false }
  return blocking.answer(call, watched, async (index) => {
    const found = await entries.list(prefix)
    const isNames = call.query.has('keys')
    // Consul has an empty list of all names, but no empty list of others.
    if (found.length === 0 && !(isNames && prefix === '')) return { status: 404, index, body: '' }
    if (!isNames) return { index, body: found.map(describe) }
    return { index, body: namesUpTo(found, prefix, call.query.get('separator') ?? '') }
  })
}

/** The names, cut after the first separator behind the prefix. */
function namesUpTo(found: readonly Entry[], prefix: string, separator: string): string[] {
  const names = found.map(({ key }) => {
    const at = separator === '' ? -1 : key.indexOf(separator, prefix.length)
    return at === -1 ? key : key.slice(0, at + separator.length)
  })
  return [...new Set(names)]
}

async function put({ entries, locks }: KvParts, call: Call, key: string): Promise<Answer> {
  if (key === '') throw new ConsulError(400, 'Missing key name')
  refuseConflicts(call, ['cas', 'acquire', 'release'])
  const { query, body: value } = call
  const flags = numberOf(query, 'flags') ?? 0
  const acquire = query.get('acquire')
  const release = query.get('release')
  const cas = numberOf(query, 'cas')
  if (acquire !== null) return { body: await locks.acquire(key, acquire, value, flags) }
  if (release !== null) return { body: await locks.release(key, release, value, flags) }
  // Like Consul's, a plain write keeps the session and sets the lock index to 0.
  const done = await entries.change(key, (entry) =>
    cas === undefined || cas === (entry?.modifyIndex ?? 0)
      ? { value, flags, lockIndex: 0 }
      : undefined,
  )
  return { body: done !== undefined }
}

async function remove({ entries }: KvParts, call: Call, key: string): Promise<Answer> {
  refuseConflicts(call, ['recurse', 'cas'])
  const cas = numberOf(call.query, 'cas')
  if (call.query.has('recurse')) {
    const found = await entries.list(key)
    for (let at = 0; at < found.length; at += DELETED_AT_ONCE) {
      const some = found.slice(at, at + DELETED_AT_ONCE)
      await Promise.all(some.map(({ key: each }) => entries.change(each, () => 'delete')))
    }
    return { body: true }
  }
  if (key === '') throw new ConsulError(400, 'Missing key name')
  let isOther = false
  await entries.change(key, (entry) => {
    isOther = cas !== undefined && entry !== undefined && entry.modifyIndex !== cas
    return isOther ? undefined : 'delete'
  })
  return { body: !isOther }
}

function describe(entry: Entry): object {
  const { key, value, flags, session, lockIndex, createIndex, modifyIndex } = entry
  return {
    LockIndex: lockIndex,
    Key: key,
    Flags: flags,
    Value: value.length === 0 ? null : value.toString('base64'),
    ...(session !== undefined && { Session: session }),
    CreateIndex: createIndex,
    ModifyIndex: modifyIndex,
  }
}

function refuseConflicts({ query }: Call, names: readonly string[]): void {
  if (names.filter((name) => query.has(name)).length < 2) return
  const all = new URLSearchParams(query)
  all.sort()
  throw new ConsulError(400, `Conflicting flags: ${all}`)
}

const UINT64_END = 2n ** 64n

function numberOf(query: URLSearchParams, name: string): number | undefined {
  const given = query.get(name)
  if (given === null) return undefined
  const isNumber = /^\d+$/.test(given)
  // A longer text is refused without being read as a number.
  if (isNumber && given.length <= 20 && BigInt(given) < UINT64_END) return Number(given)
  const why = isNumber ? 'value out of range' : 'invalid syntax'
  throw new ConsulError(500, `strconv.ParseUint: parsing "${given}": ${why}`)
}
