import { added, expectation } from './hold-times.ts'
import type { Book, HoldTimes } from './usage.ts'

/** With so many observations of a kind, they are believed. */
const SEEN_ENOUGH = 3

/** How long work of this kind is usually held, where that is known. */
export function expectedHold(books: readonly Book[], kind: string): number | undefined {
  const expected = expectation(holdTimes(books, kind))
  return expected !== undefined && expected.seen >= SEEN_ENOUGH ? expected.rest : undefined
}

/** What all processes together have seen of a kind. */
export function holdTimes(books: readonly Book[], kind: string): HoldTimes | undefined {
  let times: HoldTimes | undefined
  for (const { kinds } of books) {
    const seen = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
    if (seen !== undefined) times = added(times, seen)
  }
  return times
}
