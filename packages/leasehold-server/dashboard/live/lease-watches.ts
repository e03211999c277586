import { type End, isLeaseholdError, type LeaseStore, type Watch } from 'leasehold/port'

/** So many leases are watched at a time, and so many more each time that it is looked. */
const WATCHED_MAX = 64
const OPENED_AT_ONCE = 16
const REFUSED_MAX = 1000

export interface LeaseNews {
  /** Its life was given a last deadline: by whom and why, where it was a break. */
  capped(lease: string, end: End | undefined): void
  gone(lease: string): void
}

/**
 * Watches the leases on the screen. That one was broken is no event of any key: only those who watch
 * the lease itself are told.
 */
export class LeaseWatches {
  readonly #news: LeaseNews
  readonly #open = new Map<string, Watch>()
  /** Those that may not be watched from here, or that are over. */
  readonly #refused = new Set<string>()

  constructor(news: LeaseNews) {
    this.#news = news
  }

  /** Watches these, the last of them first where they are too many, and no others. */
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

  /** Forgets what was refused and what a store that is gone had opened. */
  clear(): void {
    for (const watch of this.#open.values()) watch.close()
    this.#open.clear()
    this.#refused.clear()
  }

  #watch(store: LeaseStore, id: string): void {
    try {
      const watch = store.watch({ lease: id }, (notice) => {
        if (notice.type === 'capped') this.#news.capped(id, notice.end)
        else if (notice.type === 'gone') {
          this.#over(id)
          this.#news.gone(id)
        } else if (notice.type === 'interrupted') {
          // A stream that broke is opened again; what is refused is refused again.
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
