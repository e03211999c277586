import type { Token, Watch } from '../../port/index.ts'
import { backoff, type End, type Key, type Notice, type OwnClaim } from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import type { TimerTask } from '../timers/index.ts'
import type { KeptLease } from './kept-lease.ts'

/** What a notice said of a claim that is not known here. Its own answer may still be on its way. */
export interface EarlyNotice {
  readonly holds: boolean
  readonly end?: End | undefined
  /** The claim's keys, if the notice listed all claims. */
  readonly keys?: Key[] | undefined
  /** The claim calls that it may belong to began in this epoch of the lease, or before. */
  readonly epoch: number
}

/**
 * Watches one lease at the store: whose turn it is, which claim was removed, how the lease ended.
 *
 * Notices and answers to calls arrive independently of each other. So a notice may be about a claim
 * that is not known here yet: it is kept until all claim calls that were in flight have ended. If
 * the watch breaks it is opened again, and its first notice lists all claims. That shows what was
 * missed. It also shows claims that nobody here knows, from a call that was never answered: they
 * are removed, because on a lease that is kept alive they would block their keys forever.
 */
export class LeaseWatch implements TimerTask {
  queuedAt = Infinity
  readonly #core: ClientCore
  readonly #lease: KeptLease
  #watch: Watch | undefined = undefined
  #failures = 0
  readonly #early = new Map<Token, EarlyNotice>()
  /** Tokens released since the watch was opened, until its first notice, which may list them. */
  #released: Set<Token> | undefined = undefined

  constructor(core: ClientCore, lease: KeptLease) {
    this.#core = core
    this.#lease = lease
  }

  open(): void {
    if (!this.#lease.alive) return
    this.#watch?.close()
    this.#released = new Set()
    try {
      const target = { lease: this.#lease.id }
      this.#watch = this.#core.store.watch(target, (notice) => this.#onNotice(notice))
    } catch {
      this.#openLater()
    }
  }

  run(): number {
    this.open()
    return Infinity
  }

  close(): void {
    this.#watch?.close()
    this.#watch = undefined
    this.#core.timers.drop(this)
    this.#early.clear()
  }

  /** A release of this claim is on its way. */
  released(token: Token): void {
    this.#released?.add(token)
  }

  /** What notices already said of a claim that has just been answered. */
  takeEarly(token: Token): EarlyNotice | undefined {
    const early = this.#early.get(token)
    this.#early.delete(token)
    return early
  }

  /** All claim calls that began before this epoch have ended: claims still unknown are nobody's. */
  claimCallsEnded(epoch: number): void {
    for (const [token, early] of [...this.#early]) {
      if (early.epoch >= epoch) continue
      this.#early.delete(token)
      if (early.keys !== undefined) this.#lease.discard(early.keys, token)
    }
    if (this.#early.size > 0) this.#lease.markClaimCalls()
  }

  #onNotice(notice: Notice): void {
    const { type } = notice
    if (type === 'standing') {
      this.#failures = 0
      this.#onStanding(notice.revision, notice.claims)
    } else if (type === 'holds') this.#onHolds(notice.token)
    else if (type === 'removed') this.#onRemoved(notice.key, notice.token, notice.end)
    else if (type === 'capped') this.#lease.cappedByNotice(notice.remaining, notice.end)
    else if (type === 'gone') this.#lease.endedByStore(notice.end)
    else if (type === 'interrupted') this.#openLater()
  }

  #onHolds(token: Token): void {
    const acquisition = this.#lease.waiting.get(token)
    if (acquisition !== undefined) acquisition.onTurn()
    else if (!this.#lease.holds.has(token)) this.#remember(token, { holds: true })
  }

  #onRemoved(key: Key, token: Token, end: End): void {
    if (this.#lease.holds.has(token) || this.#lease.waiting.has(token)) {
      this.#lease.claimRemoved(token, key, end)
    } else this.#remember(token, { holds: false, end })
  }

  #remember(token: Token, early: Omit<EarlyNotice, 'epoch'>): void {
    this.#early.set(token, {
      keys: this.#early.get(token)?.keys,
      ...early,
      epoch: this.#lease.epoch,
    })
    this.#lease.markClaimCalls()
  }

  /** The store lists all claims of the lease as of a revision. */
  #onStanding(revision: number, claims: readonly OwnClaim[]): void {
    const lease = this.#lease
    const released = this.#released
    this.#released = undefined
    const standing = new Map<Token, { keys: Key[]; holds: boolean }>()
    for (const { key, token, holds } of claims) {
      const entry = standing.get(token)
      if (entry === undefined) standing.set(token, { keys: [key], holds })
      else entry.keys.push(key)
    }
    // A claim made after this revision cannot be in the list, and is not missing.
    for (const entry of [...lease.holds.values(), ...lease.waiting.values()]) {
      const found = standing.get(entry.claimToken)
      if (entry.revision > revision || found?.keys.length === entry.keys.length) continue
      lease.claimRemoved(entry.claimToken, undefined, undefined)
    }
    for (const [token, { keys, holds }] of standing) {
      if (lease.holds.has(token) || released?.has(token)) continue
      const acquisition = lease.waiting.get(token)
      if (acquisition !== undefined) {
        if (holds) acquisition.onTurn()
      } else this.#remember(token, { holds, keys })
    }
  }

  #openLater(): void {
    this.#watch = undefined
    const wait = backoff(this.#failures++, this.#core.random)
    this.#core.timers.schedule(this, this.#core.timers.now() + wait)
  }
}
