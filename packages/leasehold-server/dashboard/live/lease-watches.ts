import { type End, isLeaseholdError, type LeaseStore, type Watch } from 'leasehold/port'

/** The most watched leases, and the most new watches per update. */
const WATCHED_MAX = 64
const OPENED_AT_ONCE = 16
const REFUSED_MAX = 1000

export interface LeaseWatchHandlers {
  /** The lease got a final deadline; `end` says who broke it and why, if it was a break. */
  capped(lease: string, end: End | undefined): void
  gone(lease: string): void
}

/**
 * Watches the leases on the screen. A break is not an event of a key: only a watch of the lease itself
 * reports it.
 */
export class LeaseWatches {
  readonly #handlers: LeaseWatchHandlers
  readonly #open = new Map<string, Watch>()
  /** Leases that may not be watched, or that have ended. */
  readonly #refused = new Set<string>()

  constructor(handlers: LeaseWatchHandlers) {
    this.#handlers = handlers
  }

  /** Watches these leases and no others; if there are too many, the last ones. */
  set(store: LeaseStore, leases: readonly string[]): void {
    const wanted = new Set(leases.slice(-WATCHED_MAX))
    for (const [id, watch] of this.#open) {
      if (wanted.has(id)) continue
      this.#open.delete(id)
      watch.close()
    }
    let left = OPENED_AT_ONCE
    for (const id of wanted) {
      if (this.#open.has(id) || this.#refused.has(id)) continue
      if (left-- === 0) return
      this.#watch(store, id)
    }
  }

  /** Forgets the refused leases and closes all watches. */
  clear(): void {
    for (const watch of this.#open.values()) watch.close()
    this.#open.clear()
    this.#refused.clear()
  }

  #watch(store: LeaseStore, id: string): void {
    try {
      const watch = store.watch({ lease: id }, (notice) => {
        if (notice.type === 'capped') this.#handlers.capped(id, notice.end)
        else if (notice.type === 'gone') {
          this.#over(id)
          this.#handlers.gone(id)
        } else if (notice.type === 'interrupted') {
          // After a broken stream the watch is opened again; a refusal is final.
          if (isLeaseholdError(notice.error, 'unknown-outcome')) this.#open.delete(id)
          else this.#over(id)
        }
      })
      this.#open.set(id, watch)
    } catch {
      this.#over(id)
    }
  }

  #over(id: string): void {
    this.#open.delete(id)
    if (this.#refused.size < REFUSED_MAX) this.#refused.add(id)
  }
}
