import { type Answer, type Call, ConsulError, flag } from './answer.ts'
import type { BlockingQueries } from './blocking-queries.ts'
import type { Entries, Entry } from './entries.ts'
import type { Locks } from './locks.ts'
import { ENTRY } from './names.ts'

export interface KvParts {
  readonly entries: Entries
  readonly locks: Locks
  readonly blocking: BlockingQueries
}

/** `/v1/kv/…`. */
export function kvRoute(parts: KvParts, call: Call, key: string): Promise<Answer> {
  switch (call.method) {
    case 'GET':
      return flag(call.query, 'keys') || flag(call.query, 'recurse')
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
    if (!flag(call.query, 'raw')) return { index, body: [describe(entry)] }
    return { index, body: entry.value, type: 'text/plain', isRaw: true }
  })
}

async function list({ entries, blocking }: KvParts, call: Call, prefix: string): Promise<Answer> {
  const watched = { prefix: `${ENTRY}${prefix}`, exact: false }
  return blocking.answer(call, watched, async (latest) => {
    const found = await entries.list(prefix)
    const index = Math.max(latest, ...found.map(({ modifyIndex }) => modifyIndex))
    const isNames = flag(call.query, 'keys')
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
  const { query, body: value } = call
  const flags = numberOf(query, 'flags') ?? 0
  const acquire = query.get('acquire')
  const release = query.get('release')
  const cas = numberOf(query, 'cas')
  const given = ['acquire', 'cas', 'release'].filter((name) => query.has(name))
  if (given.length > 1) {
    const flags = given.map((name) => `${name}=${query.get(name)}`).join('&')
    throw new ConsulError(400, `Conflicting flags: ${flags}`)
  }
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

async function remove({ entries, locks }: KvParts, call: Call, key: string): Promise<Answer> {
  const { query } = call
  const cas = numberOf(query, 'cas')
  if (flag(query, 'recurse')) {
    const found = await entries.list(key)
    for (const { key: each, session } of found) {
      await entries.change(each, (entry) => (entry ? 'delete' : undefined))
      if (session !== undefined) await locks.forget(each, session)
    }
    return { body: true }
  }
  if (key === '') throw new ConsulError(400, 'Missing key name')
  let session: string | undefined
  let isOther = false
  await entries.change(key, (entry) => {
    session = entry?.session
    isOther = cas !== undefined && entry !== undefined && entry.modifyIndex !== cas
    return isOther ? undefined : 'delete'
  })
  if (session !== undefined && !isOther) await locks.forget(key, session)
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

function numberOf(query: URLSearchParams, name: string): number | undefined {
  const given = query.get(name)
  if (given === null) return undefined
  if (/^\d+$/.test(given)) return Number(given)
  throw new ConsulError(500, `strconv.ParseUint: parsing "${given}": invalid syntax`)
}
