import type { Event, LeaseholdError, Notice, Revision, Watch } from '../port/index.ts'
import type { Task } from './agenda.ts'
import { storeError } from './call.ts'
import type { ClientCore } from './core.ts'
import { closedError } from './loss.ts'
import { restAfter } from './patience.ts'

/** Called as long as it is followed. It should return quickly and must not throw. */
export interface Listener {
  /**
   * Reads what there is, and answers with the revision to follow from: called at first, and after
   * something was missed. Where this is not given, it begins with what comes.
   */
  begin?(): Promise<Revision>
  /** What happened, in order, each event once, all events of a revision in one call. */
  events(events: readonly Event[]): void
  /** Something may have happened that will not be told: the store no longer knows it. */
  missed?(): void
  /** Nothing more will be told. */
  closed?(): void
}

/** How often a store across a line is asked whether it is still there. */
const PROBE_MS = 2000

/**
 * What happens under a prefix, event by event. Unlike a `View` it keeps nothing, so that it is for
 * prefixes with more keys than one process would want to know, and for the reasons of ends.
 *
 * **Promised.** Events come in order, each once. After an outage it goes on from where it was, however
 * long that was; where the store no longer knows the way from there, `missed` says so, and it goes on
 * from now. A line that went dead without a word is found by asking.
 *
 * **Not promised.** That anything is told while the store cannot be reached.
 */
export class Following implements Task, Disposable {
  agendaAt = Infinity
  /**
   * Fulfilled when it first listens: what happens after that is told. Rejected if it is closed
   * before, or if the store forbids it: then it does not try again.
   */
  readonly ready: Promise<void>
  readonly #core: ClientCore
  readonly #prefix: string
  readonly #listener: Listener
  #watch: Watch | undefined = undefined
  /** Whether the store has answered to this watch: until then nobody knows whether it is there. */
  #isHeard = false
  /** Everything up to here has been told; `undefined` before the first word of the store. */
  #seen: Revision | undefined = undefined
  #heardAt = -Infinity
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
    // Whoever does not wait for it need not catch it.
    this.ready.catch(() => {})
    core.followings.add(this)
    void this.#open()
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Whether the store's news come in. */
  get live(): boolean {
    return this.#watch !== undefined && this.#isHeard
  }

  /** How many milliseconds ago the store was last heard of; 0 for a live one in this process. */
  age(): number {
    if (this.live && this.#core.inProcess) return 0
    return Math.max(0, this.#core.agenda.now() - this.#heardAt)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#watch?.close()
    this.#watch = undefined
    this.#core.agenda.drop(this)
    this.#core.followings.delete(this)
    this.#isNot(closedError())
    this.#listener.closed?.()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** Its time has come: to watch again, or to ask whether the store is there. */
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
      this.#isHeard = false
      const target = { prefix: this.#prefix, from: this.#seen }
      const watch = this.#core.calls.watch(target, (notice) => {
        if (this.#watch === watch) this.#hear(notice)
      })
      this.#watch = watch
      this.#probeLater()
    } catch (error) {
      this.#openLater(storeError(error))
    }
  }

  #hear(notice: Notice): void {
    this.#heardAt = this.#core.agenda.now()
    this.#isHeard = true
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
      this.#heardAt = this.#core.agenda.now()
      if (this.#watch === watch) this.#probeLater()
    } catch (error) {
      // Calls did not get through, so news may not have either: it asks for them again.
      if (this.#watch === watch) this.#openLater(storeError(error))
    }
  }

  #probeLater(): void {
    if (this.#closed || this.#core.inProcess) return
    this.#core.agenda.schedule(this, this.#core.agenda.now() + PROBE_MS)
  }

  #openLater(error: LeaseholdError | undefined): void {
    this.#watch?.close()
    this.#watch = undefined
    if (this.#closed) return
    // One that was allowed once may be allowed again; one that never was would keep others waiting.
    const isForbidden = error?.code === 'forbidden' && !this.#wasReady
    if (error?.code === 'invalid-argument' || error?.code === 'closed' || isForbidden) {
      this.#isNot(error)
      return
    }
    const rest = restAfter(this.#failures++, this.#core.random)
    this.#core.agenda.drop(this)
    this.#core.agenda.schedule(this, this.#core.agenda.now() + rest)
  }
}
