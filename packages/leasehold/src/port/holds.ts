/**
 * Decides which claims hold a key.
 *
 * A key is a list of claims in token order, and only that list decides. An exclusive claim holds if
 * it is first. A shared claim holds if every claim before it is shared and holds, and fewer than
 * its limit do. So the holders are always the first claims of the list, and the others wait.
 */
export interface Standing {
  readonly mode: Mode
  /** At most this many may hold at once, this claim included. Only for a shared claim. */
  readonly limit?: number | undefined
}

export type Mode = 'exclusive' | 'shared'

/** Whether a claim holds if `held` claims are before it, and all of those hold. */
export function holdsBehind(claim: Standing, held: number, heldAreShared: boolean): boolean {
  if (held === 0) return true
  return claim.mode === 'shared' && heldAreShared && held < (claim.limit ?? Infinity)
}

/** How many claims of the list hold. They are always the first ones. */
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
