import { holdsBehind } from '../../port/index.ts'
import { NONE } from './rows.ts'
import type { Tables } from './tables.ts'

/** A key with at least this many claims has an index by token instead of a list search. */
const INDEXED_FROM = 64

/**
 * The queue of claims on each key, in token order, holders first. It applies `holds()` of the port
 * step by step, so that the cost depends on the size of the change and not on the queue's length.
 */
export class Queues {
  readonly #tables: Tables
  readonly #indexes = new Map<number, Map<number, number>>()

  constructor(tables: Tables) {
    this.#tables = tables
  }

  /** Whether a new claim at the end of this key's queue would hold at once. */
  wouldHold(key: number, mode: 'exclusive' | 'shared', limit: number): boolean {
    const { keys, claims } = this.#tables
    const held = keys.held.get(key)
    if (held !== keys.count.get(key)) return false
    const shared = held === 0 || claims.mode(keys.first.get(key)) === 'shared'
    return holdsBehind({ mode, limit: limit || undefined }, held, shared)
  }

  /** Adds a new claim at the end of its key's queue. It may hold at once. */
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

  /** Inserts a claim into its key's queue by its token. It does not hold until `recompute`. */
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
    keys.claimAdded(key)
    if (this.#indexes.size > 0 || keys.count.get(key) >= INDEXED_FROM) this.#index(key, claim)
  }

  /** Removes a claim from its key's queue. No waiting claim holds before `advance`. */
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
    keys.claimRemoved(key)
    if (this.#indexes.size === 0) return
    this.#indexes.get(key)?.delete(claims.token.get(claim))
    if (keys.count.get(key) === 0) this.#indexes.delete(key)
  }

  /** Lets the first waiting claims hold if they may. Calls `held` with each of them. */
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
   * Recomputes which claims hold a key, after a claim was inserted before others. A claim that still
   * holds keeps its time. Calls `held` and `waits` with the claims that change.
   */
  recompute(key: number, held: (claim: number) => void, waits: (claim: number) => void): void {
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
    // The claims that held before are among the first ones, plus the one that was inserted.
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

  /** Whether `claim`, the first one that waits, would hold at its position. */
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
