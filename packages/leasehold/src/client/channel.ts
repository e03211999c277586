import type { End, Key, Notice, OwnClaim, Token, Watch } from '../port/index.ts'
import type { Task } from './agenda.ts'
import type { ClientCore } from './core.ts'
import type { Keeper } from './keeper.ts'
import { restAfter } from './patience.ts'

/** What a notice told of a claim that we do not know: one whose own answer is not here yet? */
export interface Early {
  readonly holds: boolean
  readonly end?: End | undefined
  /** The keys, where it was told how things stand. */
  readonly keys?: Key[] | undefined
  /** The calls that it may belong to began in this epoch of the keeper's, or before. */
  readonly epoch: number
}

/**
 * A lease's private line from the store: whose turn it is, what was taken, how it ended.
 *
 * The line and the answers to calls are two, and neither waits for the other. So a notice may speak
 * of a claim that we do not know yet: it is kept until all calls that were under way have ended. And when the line
 * breaks it is opened again, and the first notice then tells how things stand: what we missed is
 * found, and claims of ours that nobody here knows of (a call whose answer never came) are removed,
 * because on a lease that is kept alive they would block their keys for ever.
 */
export class Channel implements Task {
  agendaAt = Infinity
  readonly #core: ClientCore
  readonly #keeper: Keeper
  #watch: Watch | undefined = undefined
  #closed = false
  #failures = 0
  readonly #early = new Map<Token, Early>()

  constructor(core: ClientCore, keeper: Keeper) {
    this.#core = core
    this.#keeper = keeper
  }

  open(): void {
    if (this.#closed) return
    this.#watch?.close()
    try {
      const watch = this.#core.store.watch({ lease: this.#keeper.lease }, (notice) => {
        if (this.#watch === watch) this.#hear(notice)
      })
      this.#watch = watch
    } catch {
      this.#openLater()
    }
  }

  run(): number {
    this.open()
    return Infinity
  }

  close(): void {
    this.#closed = true
    this.#watch?.close()
    this.#watch = undefined
    this.#core.agenda.drop(this)
    this.#early.clear()
  }

  /** Whether something was told of a claim whose answer we had not seen. */
  knows(token: Token): boolean {
    return this.#early.has(token)
  }

  /** What was already told of a claim that has just been answered. */
  takeEarly(token: Token): Early | undefined {
    const early = this.#early.get(token)
    this.#early.delete(token)
    return early
  }

  /** All claims of ours that began before this epoch have ended: who is unknown still is nobody's. */
  callsEnded(epoch: number): void {
    for (const [token, early] of [...this.#early]) {
      if (early.epoch >= epoch) continue
      this.#early.delete(token)
      if (early.keys !== undefined) this.#keeper.discard(early.keys, token)
    }
    if (this.#early.size > 0) this.#keeper.markCalls()
  }

  #hear(notice: Notice): void {
    const { type } = notice
    if (type === 'standing') {
      this.#failures = 0
      this.#stand(notice.revision, notice.claims)
    } else if (type === 'holds') this.#holds(notice.token)
    else if (type === 'removed') this.#removed(notice.key, notice.token, notice.end)
    else if (type === 'capped') this.#keeper.capTold(notice.remaining, notice.end)
    else if (type === 'gone') this.#keeper.told(notice.end)
    else if (type === 'interrupted') this.#openLater()
  }

  #holds(token: Token): void {
    const attempt = this.#keeper.waiting.get(token)
    if (attempt !== undefined) attempt.turn()
    else if (!this.#keeper.holds.has(token)) this.#remember(token, { holds: true })
  }

  #removed(key: Key, token: Token, end: End): void {
    if (this.#keeper.holds.has(token) || this.#keeper.waiting.has(token)) {
      this.#keeper.taken(token, key, end)
    } else this.#remember(token, { holds: false, end })
  }

  #remember(token: Token, early: Omit<Early, 'epoch'>): void {
    this.#early.set(token, {
      keys: this.#early.get(token)?.keys,
      ...early,
      epoch: this.#keeper.epoch,
    })
    this.#keeper.markCalls()
  }

  #stand(revision: number, claims: readonly OwnClaim[]): void {
    const keeper = this.#keeper
    const standing = new Map<Token, { keys: Key[]; holds: boolean }>()
    for (const { key, token, holds } of claims) {
      const entry = standing.get(token)
      if (entry === undefined) standing.set(token, { keys: [key], holds })
      else entry.keys.push(key)
    }
    // What was claimed after this revision cannot be in it, and is not missing.
    for (const entry of [...keeper.holds.values(), ...keeper.waiting.values()]) {
      const found = standing.get(entry.claimToken)
      if (entry.revision > revision || found?.keys.length === entry.keys.length) continue
      keeper.taken(entry.claimToken, undefined, undefined)
    }
    for (const [token, { keys, holds }] of standing) {
      if (keeper.holds.has(token)) continue
      const attempt = keeper.waiting.get(token)
      if (attempt !== undefined) {
        if (holds) attempt.turn()
      } else this.#remember(token, { holds, keys })
    }
  }

  #openLater(): void {
    this.#watch = undefined
    const rest = restAfter(this.#failures++, this.#core.random)
    this.#core.agenda.schedule(this, this.#core.agenda.now() + rest)
  }
}
