import type { Client } from '../../../client/index.ts'
import {
  isLeaseholdError,
  type Key,
  type LeaseId,
  type Timer,
  type Token,
} from '../../../port/index.ts'

/** How long what a checker has found stands after it. */
const RESULTS_TTL_MS = 30_000
const RENEW_EVERY_MS = RESULTS_TTL_MS / 3
const RETRY_MS = 1000
const WRITES_MAX = 16

interface WrittenResult {
  readonly lease: LeaseId
  readonly token: Token
  readonly text: string
}

/**
 * Where a checker writes what it has found: claims of its own, so that an instance's own claim stays
 * its own.
 *
 * They are under leases that nobody keeps but this, and that it does not end: when a checker stops,
 * its results stand until the next one, which has read them, has written them again. They are
 * shared claims, and the newest counts, so the next one need not wait for the old ones to go; and
 * one that was cut off and comes back late writes where nobody looks any more.
 */
export class HealthResults {
  readonly #client: Client
  readonly #assertActive: () => void
  readonly #leases = new Set<LeaseId>()
  readonly #written = new Map<Key, WrittenResult>()
  /** What is to be written, or removed. */
  readonly #wanted = new Map<Key, string | undefined>()
  readonly #busy = new Set<Key>()
  #lease: Promise<LeaseId> | undefined = undefined
  #timer!: Timer
  #retry: Timer | undefined = undefined
  #stopped = false

  /** `assertActive` throws where this must not write any more: a late claim would be the newest. */
  constructor(client: Client, assertActive: () => void) {
    this.#client = client
    this.#assertActive = assertActive
    this.#renewLater()
  }

  set(key: Key, text: string): void {
    this.#wanted.set(key, text)
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
    // A copy: what fails at once is wanted again, and must not be tried again in this loop.
    for (const key of [...this.#wanted.keys()]) {
      if (this.#stopped || this.#busy.size >= WRITES_MAX) return
      if (!this.#busy.has(key)) void this.#write(key)
    }
  }

  async #write(key: Key): Promise<void> {
    const text = this.#wanted.get(key)
    this.#wanted.delete(key)
    this.#busy.add(key)
    try {
      this.#assertActive()
      if (text === undefined) await this.#remove(key)
      else await this.#put(key, text)
    } catch (error) {
      this.#recordFailure(key, error)
      if (!this.#wanted.has(key)) this.#wanted.set(key, text)
      this.#retryLater()
      return
    } finally {
      this.#busy.delete(key)
    }
    this.#pump()
  }

  async #put(key: Key, text: string): Promise<void> {
    const { store } = this.#client
    const written = this.#written.get(key)
    if (written === undefined) {
      this.#lease ??= this.#grant().catch((error) => {
        this.#lease = undefined
        throw error
      })
      const lease = await this.#lease
      const claims = [{ key, mode: 'shared', value: text }] as const
      const { token } = (await store.claim({ lease, claims })) as { readonly token: Token }
      this.#written.set(key, { lease, token, text })
    } else if (written.text !== text) {
      await store.update({ lease: written.lease, key, token: written.token, value: text })
      this.#written.set(key, { ...written, text })
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

  /** What a failure says about the lease or the claim, so that the next try does better. */
  #recordFailure(key: Key, error: unknown): void {
    const code = isLeaseholdError(error) ? error.code : undefined
    const lease = this.#written.get(key)?.lease
    this.#written.delete(key)
    if (code === 'lease-ended' || code === 'lease-not-found') {
      this.#forget(lease)
      this.#lease = undefined
    }
    // A lease that is full is of no use for what comes next. One without a claim is not full.
    const latest = [...this.#leases].at(-1)
    const isUsed = [...this.#written.values()].some((written) => written.lease === latest)
    if (code === 'limit-exceeded' && lease === undefined && isUsed) this.#lease = undefined
  }

  /** A lease is gone, and all that was written under it: it is written again. */
  #forget(lease: LeaseId | undefined): void {
    if (lease === undefined) return
    this.#leases.delete(lease)
    this.#lease = undefined
    for (const [key, written] of this.#written) {
      if (written.lease !== lease) continue
      this.#written.delete(key)
      if (!this.#wanted.has(key)) this.#wanted.set(key, written.text)
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
      // Unanswered: what it means for the leases is seen at the next renewal.
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
