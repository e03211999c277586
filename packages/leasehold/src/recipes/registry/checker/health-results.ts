import type { Client } from '../../../client/index.ts'
import {
  isLeaseholdError,
  type Key,
  type LeaseId,
  type Timer,
  type Token,
} from '../../../port/index.ts'

/** How long results stay after their checker stopped. */
const RESULTS_TTL_MS = 30_000
const RENEW_EVERY_MS = RESULTS_TTL_MS / 3
const RETRY_MS = 1000
const WRITES_MAX = 16

interface WrittenResult {
  readonly lease: LeaseId
  readonly token: Token
  readonly json: string
}

/**
 * Publishes the results of a checker, as its own claims.
 *
 * The claims have leases that only this class renews and that it does not end. So when a checker
 * stops, its results stay until the next checker has read them and written its own. The claims are
 * shared and the newest counts, so the next checker need not wait for the old ones to expire.
 */
export class HealthResults {
  readonly #client: Client
  readonly #assertActive: () => void
  readonly #leases = new Set<LeaseId>()
  readonly #written = new Map<Key, WrittenResult>()
  /** What to write; `undefined` means remove. */
  readonly #wanted = new Map<Key, string | undefined>()
  readonly #busy = new Set<Key>()
  #lease: Promise<LeaseId> | undefined = undefined
  #timer!: Timer
  #retry: Timer | undefined = undefined
  #stopped = false

  /** `assertActive` throws if this must not write any more: a late claim would be the newest. */
  constructor(client: Client, assertActive: () => void) {
    this.#client = client
    this.#assertActive = assertActive
    this.#renewLater()
  }

  set(key: Key, json: string): void {
    this.#wanted.set(key, json)
    this.#pump()
  }

  drop(key: Key): void {
    this.#wanted.set(key, undefined)
    this.#pump()
  }

  stop(): void {
    this.#stopped = true
    this.#wanted.clear()
    this.#timer.cancel()
    this.#retry?.cancel()
  }

  #pump(): void {
    // A copy, because a failed write is queued again and must not be retried in this loop.
    for (const key of [...this.#wanted.keys()]) {
      if (this.#stopped || this.#busy.size >= WRITES_MAX) return
      if (!this.#busy.has(key)) void this.#write(key)
    }
  }

  async #write(key: Key): Promise<void> {
    const json = this.#wanted.get(key)
    this.#wanted.delete(key)
    this.#busy.add(key)
    try {
      this.#assertActive()
      if (json === undefined) await this.#remove(key)
      else await this.#put(key, json)
    } catch (error) {
      this.#recordFailure(key, error)
      if (!this.#wanted.has(key)) this.#wanted.set(key, json)
      this.#retryLater()
      return
    } finally {
      this.#busy.delete(key)
    }
    this.#pump()
  }

  async #put(key: Key, json: string): Promise<void> {
    const { store } = this.#client
    const written = this.#written.get(key)
    if (written === undefined) {
      this.#lease ??= this.#grant().catch((error) => {
        this.#lease = undefined
        throw error
      })
      const lease = await this.#lease
      const claims = [{ key, mode: 'shared', value: json }] as const
      const { token } = (await store.claim({ lease, claims })) as { readonly token: Token }
      this.#written.set(key, { lease, token, json })
    } else if (written.json !== json) {
      await store.update({ lease: written.lease, key, token: written.token, value: json })
      this.#written.set(key, { ...written, json })
    }
  }

  async #remove(key: Key): Promise<void> {
    const written = this.#written.get(key)
    if (written === undefined) return
    this.#written.delete(key)
    await this.#client.store.release({ lease: written.lease, keys: [key], token: written.token })
  }

  async #grant(): Promise<LeaseId> {
    const { holder, store } = this.#client
    const { min } = store.guarantees.ttl
    const ttl = Math.max(RESULTS_TTL_MS, min)
    const { lease } = (await store.grant({ holder, ttl })) as { readonly lease: LeaseId }
    this.#leases.add(lease)
    return lease
  }

  /** Adjusts to a failure, so that the next try uses a usable lease and claim. */
  #recordFailure(key: Key, error: unknown): void {
    const code = isLeaseholdError(error) ? error.code : undefined
    const lease = this.#written.get(key)?.lease
    this.#written.delete(key)
    if (code === 'lease-ended' || code === 'lease-not-found') {
      this.#forget(lease)
      this.#lease = undefined
    }
    // A full lease cannot take more claims. A lease without claims is not full.
    const latest = [...this.#leases].at(-1)
    const isUsed = [...this.#written.values()].some((written) => written.lease === latest)
    if (code === 'limit-exceeded' && lease === undefined && isUsed) this.#lease = undefined
  }

  /** A lease has ended, with all results under it: write them again. */
  #forget(lease: LeaseId | undefined): void {
    if (lease === undefined) return
    this.#leases.delete(lease)
    this.#lease = undefined
    for (const [key, written] of this.#written) {
      if (written.lease !== lease) continue
      this.#written.delete(key)
      if (!this.#wanted.has(key)) this.#wanted.set(key, written.json)
    }
  }

  #renewLater(): void {
    const { clock } = this.#client
    this.#timer = clock.timer(clock.now() + RENEW_EVERY_MS, () => void this.#renew())
  }

  async #renew(): Promise<void> {
    try {
      const { lost } = await this.#client.store.renew([...this.#leases])
      for (const { lease } of lost) this.#forget(lease)
      this.#pump()
    } catch {
      // No answer. The next renewal shows which leases are lost.
    }
    if (!this.#stopped) this.#renewLater()
  }

  #retryLater(): void {
    if (this.#stopped || this.#retry !== undefined) return
    const { clock } = this.#client
    this.#retry = clock.timer(clock.now() + RETRY_MS, () => {
      this.#retry = undefined
      this.#pump()
    })
  }
}
