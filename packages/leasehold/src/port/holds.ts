/**
 * Who holds a key.
 *
 * A key is a list of claims in the order of their tokens, and who holds it is a function of that
 * list and of nothing else. An exclusive claim holds when it is first. A shared claim holds when
 * every claim before it is shared and holds, and fewer than its limit do. The holders are
 * therefore always the first claims of the list, and the rest wait.
 */
export interface Standing {
  readonly mode: Mode
  /** At most so many may hold at once, this one included. Only for a shared claim. */
  readonly limit?: number | undefined
}

export type Mode = 'exclusive' | 'shared'

/** Whether a claim holds when `held` claims stand before it, all of them holding. */
export function holdsBehind(claim: Standing, held: number, heldAreShared: boolean): boolean {
  if (held === 0) return true
  return claim.mode === 'shared' && heldAreShared && held < (claim.limit ?? Infinity)
}

/** How many claims of the list hold: the first so many. */
export function holders(list: readonly Standing[]): number {
  let held = 0
  let shared = true
  for (const claim of list) {
    if (!holdsBehind(claim, held, shared)) break
    shared = claim.mode === 'shared'
    held++
  }
  return held
}

/** Whether the claim at `index` of the list holds the key. */
export function holds(list: readonly Standing[], index: number): boolean {
  return index >= 0 && index < holders(list)
}
