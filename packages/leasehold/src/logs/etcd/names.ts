import type { Position } from '../../log/index.ts'

export type Range = readonly [start: string, end: string]

/**
 * The keys of one log:
 *
 * - `entry/BASE/ID`: an entry. Its position is the revision of its put, which is higher than `BASE`.
 * - `last`: put together with each entry, so its revision is the tail.
 * - `trimmed`: the position through which entries were deleted.
 * - `part/NAME`: a part of a snapshot.
 */
export function namesUnder(prefix: string) {
  return {
    last: `${prefix}last`,
    trimmed: `${prefix}trimmed`,
    entry: (base: Position, id: string) => `${prefix}entry/${ordered(base)}/${id}`,
    entries: [`${prefix}entry/`, `${prefix}entry0`] as Range,
    /** Entries whose base is before a position. */
    entriesBefore: (base: Position): Range => [
      `${prefix}entry/`,
      `${prefix}entry/${ordered(base)}`,
    ],
    part: (name: string) => `${prefix}part/${name}`,
    parts: [`${prefix}part/`, `${prefix}part0`] as Range,
  }
}

export type Names = ReturnType<typeof namesUnder>

/** Pads a number, so that names sort like their numbers. */
function ordered(number: number): string {
  return `${number}`.padStart(16, '0')
}
