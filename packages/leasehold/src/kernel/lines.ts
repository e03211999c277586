import { holdsBehind } from '../port/index.ts'
import { NONE } from './rows.ts'
import type { Tables } from './tables.ts'

/** Above so many claims on a key, finding one by its token uses an index instead of the list. */
const INDEXED_FROM = 64

/**
 * The line of claims on each key: kept in the order of tokens, with the holders in front. This is
 * `holds()` of the port done step by step, so that a change costs what it changes and not what
 * stands in line.
 */
export class Lines {
  readonly #tables: Tables
  readonly #indexes = new Map<number, Map<number, number>>()

  constructor(tables: Tables) {
    this.#tables = tables
  }

  /** Whether a new claim, put at the end of this key's line, would hold at once. */
  wouldHold(key: number, mode: 'exclusive' | 'shared', limit: number): boolean {
    const { keys, claims } = this.#tables
    const held = keys.held.get(key)
    if (held !== keys.count.get(key)) return false
    const shared = held === 0 || claims.mode(keys.first.get(key)) === 'shared'
    return holdsBehind({ mode, limit: limit || undefined }, held, shared)
  }

  /** Puts a new claim at the end of its key's line, where it may come to hold at once. */
  append(claim: number, now: number): void {
    const { keys, claims } = this.#tables
    const key = claims.key.get(claim)
    const held = keys.held.get(key)
    const allHold = held === keys.count.get(key)
    this.#link(claim, key, keys.last.get(key), NONE)
    if (!allHold || !this.#holdsNext(key, claim)) return
    claims.heldSince.set(claim, now)
    keys.lastHeld.set(key, claim)
    keys.held.set(key, held + 1)
  }

  /** Puts a claim into its key's line by its token. It does not hold until `settle`. */
  insert(claim: number): void {
    const { keys, claims } = this.#tables
    const key = claims.key.get(claim)
    const token = claims.token.get(claim)
    let before = keys.last.get(key)
    while (before !== NONE && claims.token.get(before) > token) {
      before = claims.previousOnKey.get(before)
    }
    this.#link(
      claim,
      key,
      before,
      before === NONE ? keys.first.get(key) : claims.nextOnKey.get(before),
    )
  }

  #link(claim: number, key: number, before: number, after: number): void {
    const { keys, claims } = this.#tables
    claims.previousOnKey.set(claim, before)
    claims.nextOnKey.set(claim, after)
    if (before === NONE) keys.first.set(key, claim)
    else claims.nextOnKey.set(before, claim)
    if (after === NONE) keys.last.set(key, claim)
    else claims.previousOnKey.set(after, claim)
    keys.grown(key)
    if (this.#indexes.size > 0 || keys.count.get(key) >= INDEXED_FROM) this.#index(key, claim)
  }

  /** Takes a claim out of its key's line. Those behind it do not come to hold until `advance`. */
  remove(claim: number): void {
    const { keys, claims } = this.#tables
    const key = claims.key.get(claim)
    const before = claims.previousOnKey.get(claim)
    const after = claims.nextOnKey.get(claim)
    if (claims.heldSince.get(claim) !== 0) {
      keys.held.add(key, -1)
      if (keys.lastHeld.get(key) === claim) keys.lastHeld.set(key, before)
    }
    if (before === NONE) keys.first.set(key, after)
    else claims.nextOnKey.set(before, after)
    if (after === NONE) keys.last.set(key, before)
    else claims.previousOnKey.set(after, before)
    keys.shrunk(key)
    if (this.#indexes.size === 0) return
    this.#indexes.get(key)?.delete(claims.token.get(claim))
    if (keys.count.get(key) === 0) this.#indexes.delete(key)
  }

  /** Lets those who stand at the front of the line hold; `held` is called with each that does. */
  advance(key: number, now: number, held: (claim: number) => void): void {
    const { keys, claims } = this.#tables
    while (keys.held.get(key) < keys.count.get(key)) {
      const last = keys.lastHeld.get(key)
      const claim = last === NONE ? keys.first.get(key) : claims.nextOnKey.get(last)
      if (!this.#holdsNext(key, claim)) return
      keys.lastHeld.set(key, claim)
      keys.held.add(key, 1)
      claims.heldSince.set(claim, now)
      held(claim)
    }
  }

  /**
   * Works out anew who holds a key, after a claim was put in before others. Who held before and
   * still does keeps the time; `held` and `waits` are called with those for whom it changes.
   */
  settle(key: number, held: (claim: number) => void, waits: (claim: number) => void): void {
    const { keys, claims } = this.#tables
    const heldBefore = keys.held.get(key)
    keys.held.set(key, 0)
    keys.lastHeld.set(key, NONE)
    let claim = keys.first.get(key)
    for (; claim !== NONE && this.#holdsNext(key, claim); claim = claims.nextOnKey.get(claim)) {
      keys.lastHeld.set(key, claim)
      keys.held.add(key, 1)
      if (claims.heldSince.get(claim) === 0) held(claim)
    }
    // Whoever held before is among the first so many, and one more that was put in.
    for (let at = keys.held.get(key); at <= heldBefore; at++) {
      if (claims.heldSince.get(claim) !== 0) waits(claim)
      claim = claims.nextOnKey.get(claim)
    }
  }

  /** The claim with this token on this key, or NONE. */
  find(key: number, token: number): number {
    const { keys, claims } = this.#tables
    const index = this.#indexes.size > 0 ? this.#indexes.get(key) : undefined
    if (index) return index.get(token) ?? NONE
    let claim = keys.first.get(key)
    while (claim !== NONE && claims.token.get(claim) !== token) claim = claims.nextOnKey.get(claim)
    return claim
  }

  /** Whether `claim`, the first that does not hold, would hold where it stands. */
  #holdsNext(key: number, claim: number): boolean {
    const { keys, claims } = this.#tables
    const held = keys.held.get(key)
    if (held === 0) return true
    const shared = claims.mode(keys.first.get(key)) === 'shared'
    return holdsBehind(
      { mode: claims.mode(claim), limit: claims.limit(claim) || undefined },
      held,
      shared,
    )
  }

  #index(key: number, claim: number): void {
    const { keys, claims } = this.#tables
    const known = this.#indexes.get(key)
    if (known) {
      known.set(claims.token.get(claim), claim)
    } else if (keys.count.get(key) >= INDEXED_FROM) {
      const index = new Map<number, number>()
      let at = keys.first.get(key)
      for (; at !== NONE; at = claims.nextOnKey.get(at)) index.set(claims.token.get(at), at)
      this.#indexes.set(key, index)
    }
  }
}
