import type { LeaseholdError } from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import { noAnswer, type TimeLimit } from '../store-calls/index.ts'
import { Timed } from '../timers/index.ts'

/** A caller that asked for a renewal and waits for it. */
export class RenewalWait extends Timed {
  readonly #core: ClientCore
  readonly #since: number
  readonly #limit: TimeLimit
  readonly #resolve: () => void
  readonly #reject: (error: LeaseholdError) => void
  #over = false

  constructor(
    core: ClientCore,
    limit: TimeLimit,
    resolve: () => void,
    reject: (error: LeaseholdError) => void,
  ) {
    super()
    this.#core = core
    this.#limit = limit
    this.#since = core.timers.now()
    this.#resolve = resolve
    this.#reject = reject
    core.keepAlive.enter()
    core.timeouts.add(this, limit.ms, this.#since)
  }

  /** Whether the wait is over: only a renewal that was sent after it began counts. */
  renewed(sentAt: number): boolean {
    if (sentAt < this.#since || !this.#leave()) return this.#over
    this.#resolve()
    return true
  }

  lost(error: LeaseholdError): void {
    if (this.#leave()) this.#reject(error)
  }

  expire(): void {
    const then = 'the client renews again until the ttl ends'
    this.lost(noAnswer('the renewal', this.#limit, { isRead: false, then }, undefined))
  }

  stop(error: LeaseholdError): void {
    this.lost(error)
  }

  #leave(): boolean {
    if (this.#over) return false
    this.#over = true
    this.#core.keepAlive.leave()
    this.#core.timeouts.remove(this)
    return true
  }
}
