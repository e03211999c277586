import type { Clock, RequestId } from '../../port/index.ts'
import type { Api } from './api.ts'
import { isFault } from './transport.ts'

/** An etcd lease takes so many entries at most: all end at once, and that must not take long. */
const ENTRIES_MOST = 1000

/** Requests whose outcome is unknown are few, or the store is not to be reached at all. */
const UNKNOWN_MOST = 10_000

/**
 * What is kept for a while and then forgotten is tied to an etcd lease that nobody renews. A new one
 * is begun after half of that time, or when one has many entries; so an entry is kept for at least
 * half of the time, and forgetting needs nobody.
 */
export class Memory {
  readonly #api: Api
  readonly #clock: Clock
  readonly #ms: number
  #lease: number | undefined
  #next: Promise<number> | undefined
  #entries = 0
  #begun = 0

  constructor(api: Api, clock: Clock, ms: number) {
    this.#api = api
    this.#clock = clock
    this.#ms = ms
  }

  /** The etcd lease to tie the next entry to. */
  lease(): number | Promise<number> {
    const isOld = this.#clock.now() - this.#begun > this.#ms / 2
    if (this.#lease === undefined || isOld) return this.#begin()
    if (++this.#entries >= ENTRIES_MOST) this.#begin().catch(() => {})
    return this.#lease
  }

  /**
   * Does something with the lease to tie entries to; once more with a new one, where etcd says that it
   * has ended. That is so when the machine slept, and with it the clock by which a lease is left.
   */
  async use<A>(act: (lease: number) => Promise<A>): Promise<A> {
    const lease = await this.lease()
    try {
      return await act(lease)
    } catch (error) {
      if (!isFault(error, 'absent')) throw error
      this.forgotten(lease)
      return act(await this.lease())
    }
  }

  /** It turned out to have ended. */
  forgotten(lease: number): void {
    if (this.#lease === lease) this.#lease = undefined
  }

  #begin(): Promise<number> {
    if (this.#next !== undefined) return this.#next
    const begun = this.#clock.now()
    this.#next = this.#api.grantLease(this.#ms).then(
      (lease) => {
        this.#lease = lease
        this.#begun = begun
        this.#entries = 0
        this.#next = undefined
        return lease
      },
      (error: Error) => {
        this.#next = undefined
        throw error
      },
    )
    return this.#next
  }
}

/**
 * The memory of requests. The transaction that carries out a request also puts an entry for it,
 * tied to a lease of this memory: a copy of it that comes late finds either the entry, or that the
 * lease is gone and etcd refuses it. So a request is never carried out twice, however late a copy
 * of it may come. Where the outcome is unknown, the same lease is used when it is sent again, so
 * that no copy of it outlives the entry.
 */
export class RequestMemory {
  readonly #memory: Memory
  readonly #unknown = new Map<RequestId, number>()

  constructor(memory: Memory) {
    this.#memory = memory
  }

  lease(request: RequestId): number | Promise<number> {
    return this.#unknown.get(request) ?? this.#memory.lease()
  }

  unknown(request: RequestId, lease: number): void {
    if (this.#unknown.size < UNKNOWN_MOST) this.#unknown.set(request, lease)
  }

  answered(request: RequestId): void {
    this.#unknown.delete(request)
  }

  forgotten(request: RequestId, lease: number): void {
    this.#unknown.delete(request)
    this.#memory.forgotten(lease)
  }
}
