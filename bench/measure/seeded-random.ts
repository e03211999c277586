/** Random numbers that are the same in every run (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Shuffles a list in place. */
export function shuffle<T>(list: T[]): T[] {
  const next = seededRandom(1)
  for (let at = list.length - 1; at > 0; at--) {
    const other = Math.floor(next() * (at + 1))
    ;[list[at], list[other]] = [list[other]!, list[at]!]
  }
  return list
}

/**
 * Cuts a list into batches of newly made strings, as if a network had just delivered them. With the
 * caller's old strings the figure would depend on their distance in memory.
 */
export function batches(list: readonly string[], size: number): string[][] {
  const all: string[][] = []
  for (let at = 0; at < list.length; at += size) {
    all.push(JSON.parse(JSON.stringify(list.slice(at, at + size))))
  }
  return all
}
