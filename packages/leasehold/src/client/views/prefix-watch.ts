import {
  backoff,
  type Event,
  type LeaseholdError,
  type Notice,
  type Revision,
  type Watch,
} from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import { closedError, storeError } from '../store-calls/index.ts'
import type { TimerTask } from '../timers/index.ts'

/** Called while the watch is open. Each function should return quickly and must not throw. */
export interface Listener {
  /**
   * Reads the current state, and returns the revision to watch from: called first, and after
   * something was missed. If it is not given, the watch begins with the next event.
   */
  begin?(): Promise<Revision>
  /** What happened, in order, each event once, all events of a revision in one call. */
  events(events: readonly Event[]): void
  /** Something may have happened that will not be reported: the store no longer knows it. */
  missed?(): void
  /** Nothing more will be reported. */
  closed?(): void
}

/** How often a store in another process is asked whether it is still there. */
const PROBE_MS = 2000

/**
 * Reports what happens under a prefix, event by event. Unlike a `View` it stores nothing. So it is
 * for prefixes with more keys than one process wants to hold, and for the reasons of ends.
 *
 * **Promised.** Events come in order, each once. After an outage, however long, it continues from
 * where it was. If the store no longer knows what followed, `missed` says so, and it continues from
 * now. A probe finds a connection that broke silently.
 *
 * **Not promised.** That anything is reported while the store cannot be reached.
 */
export class PrefixWatch implements TimerTask, Disposable {
  queuedAt = Infinity
  /**
   * Fulfilled when it is open: what happens after that is reported. Rejected if it is closed before
   * that, or if the store forbids it: then it does not try again.
   */
  readonly ready: Promise<void>
  readonly #core: ClientCore
  readonly #prefix: string
  readonly #listener: Listener
  #watch: Watch | undefined = undefined
  /** Whether the store has answered to this watch: until then it may be unreachable. */
  #isAnswered = false
  /** Everything up to here was reported; `undefined` before the store first answered. */
  #seen: Revision | undefined = undefined
  #answeredAt = -Infinity
  #failures = 0
  #closed = false
  #wasReady = false
  #isReady!: () => void
  #isNot!: (error: LeaseholdError) => void

  constructor(core: ClientCore, prefix: string, listener: Listener) {
    this.#core = core
    this.#prefix = prefix
    this.#listener = listener
    this.ready = new Promise((resolve, reject) => {
      this.#isReady = resolve
      this.#isNot = reject
    })
    // A caller that does not wait for it need not catch it.
    this.ready.catch(() => {})
    core.prefixWatches.add(this)
    void this.#open()
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Whether the store reports events. */
  get live(): boolean {
    return this.#watch !== undefined && this.#isAnswered
  }

  /** How many milliseconds ago the store last answered; 0 for a live one in this process. */
  age(): number {
    if (this.live && this.#core.inProcess) return 0
    return Math.max(0, this.#core.timers.now() - this.#answeredAt)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#watch?.close()
    this.#watch = undefined
    this.#core.timers.drop(this)
    this.#core.prefixWatches.delete(this)
    this.#isNot(closedError())
    this.#listener.closed?.()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** Its time has come: to open the watch again, or to ask whether the store is there. */
  run(): number {
    if (this.#watch === undefined) void this.#open()
    else void this.#probe()
    return Infinity
  }

  async #open(): Promise<void> {
    try {
      if (this.#seen === undefined && this.#listener.begin) {
        this.#seen = await this.#listener.begin()
        if (this.#closed) return
      }
      this.#isAnswered = false
      const target = { prefix: this.#prefix, from: this.#seen }
      const watch = this.#core.calls.watch(target, (notice) => {
        if (this.#watch === watch) this.#onNotice(notice)
      })
      this.#watch = watch
      this.#probeLater()
    } catch (error) {
      this.#openLater(storeError(error))
    }
  }

  #onNotice(notice: Notice): void {
    this.#answeredAt = this.#core.timers.now()
    this.#isAnswered = true
    if (notice.type === 'watching') {
      this.#failures = 0
      this.#seen ??= notice.revision
      this.#wasReady = true
      this.#isReady()
    } else if (notice.type === 'events') {
      this.#seen = notice.revision
      this.#listener.events(notice.events)
    } else if (notice.type === 'compacted') {
      this.#seen = undefined
      this.#listener.missed?.()
      this.#openLater(undefined)
    } else if (notice.type === 'interrupted') this.#openLater(notice.error)
  }

  async #probe(): Promise<void> {
    const watch = this.#watch
    try {
      await this.#core.calls.read({ prefix: this.#prefix, limit: 1 })
      this.#answeredAt = this.#core.timers.now()
      if (this.#watch === watch) this.#probeLater()
    } catch (error) {
      // Calls did not get through, so events may be missing too: it asks for them again.
      if (this.#watch === watch) this.#openLater(storeError(error))
    }
  }

  #probeLater(): void {
    if (this.#closed || this.#core.inProcess) return
    this.#core.timers.schedule(this, this.#core.timers.now() + PROBE_MS)
  }

  #openLater(error: LeaseholdError | undefined): void {
    this.#watch?.close()
    this.#watch = undefined
    if (this.#closed) return
    // A watch that was allowed once may be allowed again. One that never was fails at once.
    const isForbidden = error?.code === 'forbidden' && !this.#wasReady
    if (error?.code === 'invalid-argument' || error?.code === 'closed' || isForbidden) {
      this.#isNot(error)
      return
    }
    const wait = backoff(this.#failures++, this.#core.random)
    this.#core.timers.drop(this)
    this.#core.timers.schedule(this, this.#core.timers.now() + wait)
  }
}
