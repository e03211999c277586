import {
  type Clock,
  callObserver,
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
  /** The first notice was sent, and must not be sent again. */
  started: boolean
}

/**
 * The watches on a stream, and what happens to them when it breaks.
 *
 * A prefix's watch continues by itself on the next stream, after the last revision that it reported.
 * A server that no longer keeps that revision answers `compacted`, so nothing is missed silently. If
 * there is no next stream within the timeout, the watch is `interrupted`, because its user must know
 * that its data is getting old. A lease's watch is always `interrupted`: its first notice reports all
 * claims, and there can be only one.
 */
export class Watches {
  readonly #calls: Calls
  readonly #clock: Clock
  readonly #timeout: number
  readonly #watches = new Map<number, OpenWatch>()
  #timer: Timer | undefined
  /** Why there is no stream, after there was one. */
  #cause: string | undefined

  constructor(calls: Calls, clock: Clock, timeout: number) {
    this.#calls = calls
    this.#clock = clock
    this.#timeout = timeout
  }

  open(target: WatchTarget, observer: Observer): Watch {
    const id = this.#calls.nextId()
    // A copy: it may be sent again later, when the caller has changed its object.
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

  hear(id: number, received: Notice): void {
    const watch = this.#watches.get(id)
    if (watch === undefined) return
    const notice = readNotice(received)
    const { type } = notice
    if (type === 'watching' || type === 'events') {
      watch.target = { ...watch.target, from: notice.revision }
      if (type === 'watching' && watch.started) return
      watch.started = true
    } else if (type === 'gone' || type === 'compacted' || type === 'interrupted') {
      this.#watches.delete(id)
    }
    callObserver(watch.observer, notice)
  }

  up(): void {
    this.#cause = undefined
    this.#cancel()
    for (const watch of this.#watches.values()) this.#ask(watch)
  }

  down(cause: string): void {
    this.#cause = cause
    this.#interruptLater()
    this.#interrupt((watch) => 'lease' in watch.target, broken(cause))
  }

  close(error: LeaseholdError): void {
    this.#cancel()
    this.#interrupt(() => true, error)
  }

  /** A watch that is opened without a stream does not wait for one forever either. */
  #interruptLater(): void {
    const cause = this.#cause
    if (cause === undefined || this.#timer !== undefined) return
    this.#timer = this.#clock.timer(this.#clock.now() + this.#timeout, () => {
      this.#timer = undefined
      this.#interrupt(() => true, broken(cause))
    })
  }

  #cancel(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** If there is no stream now, `up` will send it. */
  #ask({ id, target }: OpenWatch): void {
    this.#calls.post(writeObject(id, 'watch', target))
  }

  #interrupt(concerns: (watch: OpenWatch) => boolean, error: LeaseholdError): void {
    for (const watch of [...this.#watches.values()].filter(concerns)) {
      if (this.#watches.delete(watch.id))
        callObserver(watch.observer, { type: 'interrupted', error })
    }
  }
}

function broken(cause: string): LeaseholdError {
  return new LeaseholdError(
    'unknown-outcome',
    `the stream to the server broke (${cause}): open a new watch`,
  )
}
