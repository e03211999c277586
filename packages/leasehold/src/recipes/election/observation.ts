import type { Client, View } from '../../client/index.ts'
import { knownNames } from '../../port/index.ts'
import { checkWaitOptions } from '../arguments.ts'
import { onAbort, sleep } from '../sleep.ts'
import { type ElectionKeys, type Leader, leaderOf } from './candidate-queue.ts'

/** A pending wait keeps the process running. It is renewed once a day. */
const DAY_MS = 86_400_000

export interface ObserveOptions {
  /** Closes the observation and ends the loops over it. */
  readonly signal?: AbortSignal | undefined
}

const OBSERVE_OPTIONS = knownNames<ObserveOptions>({ signal: true })

/**
 * An election as a follower sees it: who leads, now and from now on.
 *
 * **Promised.** Only a candidate that has taken a term is shown as leader, and terms are shown in
 * order. During an outage it keeps showing what it knew, and `age` says how old that is. Afterwards
 * it catches up by itself. Reading it costs no call.
 *
 * **Not promised.** It is behind the store by the delay of events, so the shown leader may not lead
 * any more: the leader's own writes must carry its term. If leaders change faster than the loop
 * runs, the loop gets the latest one, not each.
 */
export class Observation implements AsyncIterable<Leader | undefined>, Disposable {
  readonly #client: Client
  readonly #keys: ElectionKeys
  readonly #view: View
  readonly #closing = new AbortController()
  readonly #listeners = new Set<() => void>()
  #stopListening = () => {}

  constructor(client: Client, keys: ElectionKeys, options: ObserveOptions) {
    checkWaitOptions('observe', options, OBSERVE_OPTIONS)
    const { signal } = options
    this.#client = client
    this.#keys = keys
    this.#view = client.view(keys.prefix, () => {
      for (const wake of this.#listeners) wake()
    })
    this.#stopListening = onAbort([signal], () => this.close())
  }

  /** Resolves when the store has answered once; rejects if this is closed before. */
  get ready(): Promise<void> {
    return this.#client.awaited(this.#view.ready)
  }

  /** The leader, as far as known; `undefined` if nobody leads, and before `ready`. */
  leader(): Leader | undefined {
    return leaderOf(this.#view.places(this.#keys.queue), this.age())
  }

  /** Milliseconds since the store was last heard from; `Infinity` before `ready`. */
  age(): number {
    return this.#view.age()
  }

  /** Whether events of the store arrive. */
  get live(): boolean {
    return this.#view.live
  }

  /** Stops, and ends the loops over it. The last known leader is still shown. */
  close(): void {
    this.#stopListening()
    this.#view.close()
    this.#closing.abort()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /**
   * Yields the current leader, then each change: another leader, another value, nobody. Ends when
   * this or the client is closed. Leaving the loop closes it.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Leader | undefined, void, void> {
    try {
      await this.ready
      let shown: string | undefined
      while (!this.#closing.signal.aborted) {
        const leader = this.leader()
        const current = JSON.stringify([leader?.term, leader?.value])
        if (current === shown) await this.#change()
        else {
          shown = current
          yield leader
        }
      }
    } catch (error) {
      // Only closing ends the wait. An error of the loop's own body does not pass through here.
      if (!this.#closing.signal.aborted && !this.#client.closing.aborted) throw error
    } finally {
      this.close()
    }
  }

  async #change(): Promise<void> {
    let wake = () => {}
    await sleep(this.#client, DAY_MS, this.#closing.signal, (done) => {
      wake = done
      this.#listeners.add(wake)
    }).finally(() => this.#listeners.delete(wake))
  }
}
