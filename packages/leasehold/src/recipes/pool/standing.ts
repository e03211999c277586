import type { Place, Snapshot } from '../../client/index.ts'
import type { Key, Time, Token } from '../../port/index.ts'
import { type Definition, POOL_PREFIX, unitsOf } from './definition.ts'
import { askedFrom } from './notice.ts'
import { objectFrom, type Permitted, permittedFrom, type Queued, queuedFrom } from './request.ts'
import type { AskedBack, Standing } from './turn.ts'
import { type Book, EMPTY_BOOK, usageOf } from './usage.ts'

/** The keys of a pool. */
export interface PoolKeys {
  readonly prefix: string
  readonly definition: Key
  readonly line: Key
  readonly books: Key
  readonly notice: string
}

export function keysOf(pool: string): PoolKeys {
  const prefix = `${POOL_PREFIX}${pool}/`
  return {
    prefix,
    definition: `${prefix}definition`,
    line: `${prefix}line`,
    books: `${prefix}books`,
    notice: `${prefix}notice/`,
  }
}

/** A pool as its keys show it. */
export interface PoolStanding extends Standing<Queued, Permitted> {
  readonly books: readonly Book[]
  /**
   * The latest time that is written anywhere in the pool. It stands for now, because a decision by
   * one's own clock would differ from that of others who see the same.
   */
  readonly latest: Time
}

export function standingOf(
  claims: Snapshot,
  pool: string,
  keys: PoolKeys,
  definition: Definition,
): PoolStanding {
  const occupants = occupantsOf(claims, pool, definition)
  const waiters = claims.places(keys.line).flatMap((place) => queuedFrom(place) ?? [])
  const books = claims.places(keys.books).map(({ value }) => bookFrom(value))
  const asked = askedBack(claims, keys)
  const latest = latestOf(waiters, occupants, books)
  const usage = usageOf(books, occupants, latest, definition.halfLife)
  return { pool, definition, waiters, occupants, usage, asked, books, latest }
}

function askedBack(claims: Snapshot, keys: PoolKeys): AskedBack[] {
  const asked: AskedBack[] = []
  for (const key of claims.keys()) {
    if (!key.startsWith(keys.notice)) continue
    const one = askedFrom(claims.places(key)[0]?.value)
    if (one !== undefined) asked.push(one)
  }
  return asked
}

/** Reads a book; one that cannot be read is empty. */
export function bookFrom(text: string | undefined): Book {
  return { ...EMPTY_BOOK, ...(objectFrom(text) as Partial<Book> | undefined) }
}

function occupantsOf(claims: Snapshot, pool: string, definition: Definition): Permitted[] {
  const found = new Map<Token, { place: Place; keys: Key[]; cost: number }>()
  for (const resource of definition.resources) {
    for (const key of unitsOf(pool, resource)) {
      const place = claims.places(key)[0]
      if (place === undefined) continue
      const permit = found.get(place.token) ?? { place, keys: [], cost: 0 }
      permit.keys.push(key)
      permit.cost += 1 / resource.shares
      found.set(place.token, permit)
    }
  }
  return [...found.values()].map(({ place, keys, cost }) => permittedFrom(place, keys, cost))
}

function latestOf(
  waiters: readonly Queued[],
  occupants: readonly Permitted[],
  books: readonly Book[],
): Time {
  let latest = 0
  for (const { since } of waiters) latest = Math.max(latest, since)
  for (const { since } of occupants) latest = Math.max(latest, since)
  for (const { accounts } of books) {
    for (const { at } of Object.values(accounts)) latest = Math.max(latest, at)
  }
  return latest
}
