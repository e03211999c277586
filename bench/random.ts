/** Chance that is the same in every run (mulberry32). */
export function chance(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Puts a list in no order, in place. */
export function shuffle<T>(list: T[]): T[] {
  const next = chance(1)
  for (let at = list.length - 1; at > 0; at--) {
    const other = Math.floor(next() * (at + 1))
    ;[list[at], list[other]] = [list[other]!, list[at]!]
  }
  return list
}

/**
 * A list in batches, each with texts of its own, as if it had just come over a line: otherwise what is
 * measured is how far apart in memory the texts are that the caller has kept.
 */
export function batches(list: readonly string[], size: number): string[][] {
  const all: string[][] = []
  for (let at = 0; at < list.length; at += size) {
    all.push(JSON.parse(JSON.stringify(list.slice(at, at + size))))
  }
  return all
}
