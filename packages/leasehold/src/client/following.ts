import type { Event, LeaseholdError, Notice, Revision, Watch } from '../port/index.ts'
import type { Task } from './agenda.ts'
import { storeError } from './call.ts'
import type { ClientCore } from './core.ts'
import { closedError } from './loss.ts'

/** Called as long as it is followed. It should return quickly and must not throw. */
export interface Listener {
  /** What happened, in order, each event once, all events of a revision in one call. */
  events(events: readonly Event[]): void
  /** Something may have happened that will not be told: the store no longer knows it. */
  missed(): void
  /** Nothing more will be told, because its client was closed. */
  closed?(): void
}

const REST_MIN_MS = 50
const REST_MAX_MS = 5000
/** How often a store across a line is asked whether it is still there. */
const PROBE_MS = 2000

/**
 * What happens under a prefix, event by event. Unlike a `View` it keeps nothing, so that it is for
 * prefixes with more keys than one process would want to know, and for the reasons of ends.
 *
 * **Promised.** Events come in order, each once. After an outage it goes on from where it was; where
 * the store no longer knows the way from there, `missed` says so, and it goes on from now.
 *
 * **Not promised.** That anything is told while the store cannot be reached.
 */
export class Following implements Task {
  agendaAt = Infinity
  /** Fulfilled when it first listens: what happens after that is told. Rejected if closed before. */
  readonly ready: Promise<void>
  readonly #core: ClientCore
  readonly #prefix: string
  readonly #listener: Listener
  #watch: Watch | undefined = undefined
  /** Everything up to here has been told; `undefined` before the first word of the store. */
  #seen: Revision | undefined = undefined
  #failures = 0
  #closed = false
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
    // Whoever does not wait for it need not catch it.
    this.ready.catch(() => {})
    core.views.add(this)
    this.#open()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#watch?.close()
    this.#watch = undefined
    this.#core.agenda.drop(this)
    this.#core.views.delete(this)
    this.#isNot(closedError())
    if (this.#core.closed) this.#listener.closed?.()
  }

  /** Its time has come: to watch again, or to ask whether the store is there. */
  run(): number {
    if (this.#closed) return Infinity
    if (this.#watch === undefined) this.#open()
    else void this.#probe()
    return Infinity
  }

  #open(): void {
    try {
      const target = { prefix: this.#prefix, from: this.#seen }
      const watch = this.#core.calls.watch(target, (notice) => {
        if (this.#watch === watch) this.#hear(notice)
      })
      this.#watch = watch
    } catch (error) {
      this.#later(storeError(error))
    }
    this.#probeLater()
  }

  #hear(notice: Notice): void {
    if (notice.type === 'watching') {
      this.#failures = 0
      this.#seen ??= notice.revision
      this.#isReady()
    } else if (notice.type === 'events') {
      this.#seen = notice.revision
      this.#listener.events(notice.events)
    } else if (notice.type === 'compacted') {
      this.#seen = undefined
      this.#listener.missed()
      this.#later(undefined)
    } else if (notice.type === 'interrupted') this.#later(notice.error)
  }

  /** A line that went dead without a word is found by asking. */
  async #probe(): Promise<void> {
    const watch = this.#watch
    try {
      await this.#core.calls.read({ prefix: this.#prefix, limit: 1 })
      if (this.#watch === watch) this.#probeLater()
    } catch (error) {
      // Calls did not get through, so news may not have either: it asks for them again.
      if (this.#watch === watch) this.#later(storeError(error))
    }
  }

  #probeLater(): void {
    if (this.#closed || this.#core.inProcess) return
    this.#core.agenda.schedule(this, this.#core.agenda.now() + PROBE_MS)
  }

  #later(error: LeaseholdError | undefined): void {
    this.#watch?.close()
    this.#watch = undefined
    if (this.#closed) return
    if (error?.code === 'invalid-argument' || error?.code === 'closed') {
      this.#isNot(error)
      return
    }
    const rest = Math.min(REST_MIN_MS * 2 ** this.#failures++, REST_MAX_MS)
    const jittered = rest * (0.5 + 0.5 * this.#core.random.next())
    this.#core.agenda.drop(this)
    this.#core.agenda.schedule(this, this.#core.agenda.now() + jittered)
  }
}
