import {
  type Clock,
  LeaseholdError,
  type Notice,
  type Observer,
  type Timer,
  type Watch,
  type WatchTarget,
} from '../../port/index.ts'
import { readNotice } from './answers.ts'
import type { Calls } from './calls.ts'
import { writeObject, writeUnwatch } from './requests.ts'

interface OpenWatch {
  readonly id: number
  target: WatchTarget
  readonly observer: Observer
  /** The first notice was heard, and is not to be heard again. */
  started: boolean
}

/**
 * The watches on a stream, and what becomes of them when it breaks.
 *
 * A prefix's watch goes on by itself on the next stream, after the last revision that it told of: a
 * server that no longer keeps that revision says `compacted`, so nothing is missed unseen. Where
 * there is no next stream within the time-out it is `interrupted`, since whoever shows what it
 * watches must learn that it is getting old. A lease's watch is always `interrupted`: its first
 * notice tells how things stand, and a watch has only one such.
 */
export class Watches {
  readonly #calls: Calls
  readonly #clock: Clock
  readonly #timeout: number
  readonly #watches = new Map<number, OpenWatch>()
  #timer: Timer | undefined
  /** Why there is no stream, where there was one. */
  #trouble: string | undefined

  constructor(calls: Calls, clock: Clock, timeout: number) {
    this.#calls = calls
    this.#clock = clock
    this.#timeout = timeout
  }

  open(target: WatchTarget, observer: Observer): Watch {
    const id = this.#calls.nextId()
    // A copy: it may be sent again later, when the caller has changed what it gave us.
    const watch = { id, target: { ...target }, observer, started: false }
    this.#watches.set(id, watch)
    this.#ask(watch)
    this.#interruptLater()
    return {
      close: () => {
        if (this.#watches.delete(id)) this.#calls.post(writeUnwatch(this.#calls.nextId(), id))
      },
    }
  }

  hear(id: number, told: Notice): void {
    const watch = this.#watches.get(id)
    if (watch === undefined) return
    const notice = readNotice(told)
    const { type } = notice
    if (type === 'watching' || type === 'events') {
      watch.target = { ...watch.target, from: notice.revision }
      if (type === 'watching' && watch.started) return
      watch.started = true
    } else if (type === 'gone' || type === 'compacted' || type === 'interrupted') {
      this.#watches.delete(id)
    }
    tell(watch.observer, notice)
  }

  up(): void {
    this.#trouble = undefined
    this.#cancel()
    for (const watch of this.#watches.values()) this.#ask(watch)
  }

  down(trouble: string): void {
    this.#trouble = trouble
    this.#interruptLater()
    this.#interrupt((watch) => 'lease' in watch.target, broken(trouble))
  }

  close(error: LeaseholdError): void {
    this.#cancel()
    this.#interrupt(() => true, error)
  }

  /** Who begins to watch while there is no stream does not wait for one for ever either. */
  #interruptLater(): void {
    const trouble = this.#trouble
    if (trouble === undefined || this.#timer !== undefined) return
    this.#timer = this.#clock.timer(this.#clock.now() + this.#timeout, () => {
      this.#timer = undefined
      this.#interrupt(() => true, broken(trouble))
    })
  }

  #cancel(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** Where there is no stream now, `up` will ask. */
  #ask({ id, target }: OpenWatch): void {
    this.#calls.post(writeObject(id, 'watch', target))
  }

  #interrupt(concerns: (watch: OpenWatch) => boolean, error: LeaseholdError): void {
    for (const watch of [...this.#watches.values()].filter(concerns)) {
      if (this.#watches.delete(watch.id)) tell(watch.observer, { type: 'interrupted', error })
    }
  }
}

/** The others who watch must hear all the same; but the fault should not vanish either. */
function tell(observer: Observer, notice: Notice): void {
  try {
    observer(notice)
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : new Error(String(error)))
  }
}

function broken(trouble: string): LeaseholdError {
  return new LeaseholdError(
    'unknown-outcome',
    `the stream to the server broke (${trouble}): watch anew`,
  )
}
