import type { Client, View } from '../../client/index.ts'
import { checkWaitOptions } from '../arguments.ts'
import { onAbort, sleep } from '../sleep.ts'
import { type ElectionKeys, type Leader, leaderOf } from './candidate-queue.ts'

/** Whoever waits for news keeps the process running: so long at a time. */
const DAY_MS = 86_400_000

export interface ObserveOptions {
  /** Closes the observation, and thereby ends the loops over it. */
  readonly signal?: AbortSignal | undefined
}

/**
 * An election as a follower sees it: who leads, now and from now on.
 *
 * **Promised.** Only who has taken a term is shown as leader, and terms are shown in their order.
 * Through an outage it goes on showing what it knew, and `age` says how old that is; afterwards it
 * catches up by itself. To look costs no call.
 *
 * **Not promised.** It is behind the store by as long as news take, so the one it shows may not lead
 * any more: the leader's own writes must carry its term. Where leaders change faster than the loop
 * goes round, it is told of the latest and not of each.
 */
export class Observation implements AsyncIterable<Leader | undefined>, Disposable {
  readonly #client: Client
  readonly #keys: ElectionKeys
  readonly #view: View
  readonly #closing = new AbortController()
  readonly #listeners = new Set<() => void>()
  #stopListening = () => {}

  constructor(client: Client, keys: ElectionKeys, options: ObserveOptions) {
    checkWaitOptions(options)
    const { signal } = options
    this.#client = client
    this.#keys = keys
    this.#view = client.view(keys.prefix, () => {
      for (const wake of this.#listeners) wake()
    })
    this.#stopListening = onAbort([signal], () => this.close())
  }

  /** Fulfilled when the store was heard of once; rejected if this is closed before. */
  get ready(): Promise<void> {
    return this.#client.awaited(this.#view.ready)
  }

  /** Who leads, as far as is known; `undefined` while nobody does, and before `ready`. */
  leader(): Leader | undefined {
    return leaderOf(this.#view.places(this.#keys.queue), this.age())
  }

  /** How many milliseconds ago the store was last heard of; `Infinity` before `ready`. */
  age(): number {
    return this.#view.age()
  }

  /** Whether the store's news come in. */
  get live(): boolean {
    return this.#view.live
  }

  /** Stops. Loops over it end. What was known last is still shown. */
  close(): void {
    this.#stopListening()
    this.#view.close()
    this.#closing.abort()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /**
   * First who leads now, then each change: another leader, another value, nobody. Ends when this or
   * the client is closed; leaving the loop closes it.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Leader | undefined, void, void> {
    try {
      await this.ready
      let told: string | undefined
      while (!this.#closing.signal.aborted) {
        const leader = this.leader()
        const news = JSON.stringify([leader?.term, leader?.value])
        if (news === told) await this.#change()
        else {
          told = news
          yield leader
        }
      }
    } catch (error) {
      // Waiting is ended by closing only; what the loop's own body threw does not come by here.
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
