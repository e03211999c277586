import {
  type Clock,
  type Event,
  isLeaseholdError,
  type LeaseStore,
  type Watch,
} from 'leasehold/port'

/** A busy prefix is reported at most this often. */
const REPORT_EVERY_MS = 250
/** How long to wait before a watch that the store ended is opened again. */
const REOPEN_AFTER_MS = 1000

export interface ChangeWatchOptions {
  readonly store: LeaseStore
  readonly clock: Clock
  readonly prefix: string
  /** Which events count. Default: all. */
  readonly matters?: ((event: Event) => boolean) | undefined
  readonly changed: () => void
}

/**
 * Calls `changed` after something changed under a prefix, now and then rather than for every event. The
 * beginning of the watch counts as a change, because the caller may have read something before it. A
 * watch that the store ends is opened again. One that the caller has no right to reports nothing.
 */
export function watchChanges(options: ChangeWatchOptions): Watch {
  const { store, clock, prefix, matters = () => true, changed } = options
  let isClosed = false
  let inner: Watch | undefined
  let isPending = false
  let reportedAt = -Infinity
  const report = () => {
    if (isPending || isClosed) return
    isPending = true
    clock.timer(Math.max(clock.now(), reportedAt + REPORT_EVERY_MS), () => {
      isPending = false
      reportedAt = clock.now()
      if (!isClosed) changed()
    })
  }
  const open = () => {
    if (isClosed) return
    inner = store.watch({ prefix }, (notice) => {
      if (notice.type === 'watching') report()
      if (notice.type === 'events' && notice.events.some(matters)) report()
      if (notice.type !== 'interrupted' && notice.type !== 'compacted') return
      if (notice.type === 'interrupted' && isRefused(notice.error)) return
      clock.timer(clock.now() + REOPEN_AFTER_MS, tryOpen)
    })
  }
  const tryOpen = () => {
    try {
      open()
    } catch (error) {
      if (!isRefused(error)) throw error
    }
  }
  tryOpen()
  return {
    close: () => {
      isClosed = true
      inner?.close()
    },
  }
}

function isRefused(error: unknown): boolean {
  return (
    isLeaseholdError(error, 'forbidden') ||
    isLeaseholdError(error, 'unauthenticated') ||
    isLeaseholdError(error, 'closed')
  )
}
