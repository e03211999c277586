import { LeaseholdError } from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import type { Timed } from '../timers/index.ts'

/** A caller that asked for a renewal and waits for it. */
export class RenewalWait implements Timed {
  timeout: Timed['timeout'] = undefined
  readonly #core: ClientCore
  readonly #since: number
  readonly #resolve: () => void
  readonly #reject: (error: LeaseholdError) => void
  #over = false

  constructor(core: ClientCore, resolve: () => void, reject: (error: LeaseholdError) => void) {
    this.#core = core
    this.#since = core.timers.now()
    this.#resolve = resolve
    this.#reject = reject
    core.keepAlive.enter()
    core.timeouts.add(this, core.settings.callTimeout)
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
    this.lost(
      new LeaseholdError(
        'unknown-outcome',
        `the store did not answer the renewal within ${this.#core.settings.callTimeout}ms: it may have been carried out`,
      ),
    )
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
