import { type Client, Conflict, type Hold } from '../../client/index.ts'
import type { Key, Timer, Token } from '../../port/index.ts'
import { objectIn } from '../values/json.ts'
import type { PreemptionNotice } from './permit.ts'
import type { Request, StoredPermit } from './request.ts'
import type { PreemptedPermit } from './schedule/schedule.ts'

/** A notice ends soon after the process that gave it died. */
const NOTICE_TTL_MS = 15_000
const RETRY_MS = 1000

export interface PreemptionDependencies {
  readonly client: Client
  readonly prefix: string
  readonly period: number
}

/**
 * Preempts one permit. It claims a notice key that the permit's holder watches, and revokes the
 * permit's keys when the notice period is over. The waiting request holds the notice: if it gives
 * up or dies, the notice ends and the permit stays.
 */
export class PreemptionRequest {
  readonly #pool: PreemptionDependencies
  readonly #permit: StoredPermit
  readonly #request: Request
  readonly #waiter: Token
  #hold: Hold | undefined = undefined
  #timer: Timer | undefined = undefined
  #withdrawn = false

  constructor(pool: PreemptionDependencies, permit: StoredPermit, request: Request, waiter: Token) {
    this.#pool = pool
    this.#waiter = waiter
    this.#permit = permit
    this.#request = request
    void this.#notify()
  }

  withdraw(): void {
    this.#withdrawn = true
    this.#timer?.cancel()
    void this.#hold?.[Symbol.asyncDispose]()
  }

  async #notify(): Promise<void> {
    const { client, period } = this.#pool
    const { tenant, priority } = this.#request
    const key = noticeKey(this.#pool.prefix, this.#permit)
    const { token: permit, keys } = this.#permit
    const value = JSON.stringify({ tenant, priority, period, permit, line: this.#waiter, keys })
    try {
      const hold = await client.tryHold([{ key, value }], { ttl: NOTICE_TTL_MS })
      if (hold instanceof Conflict) {
        // Another request has given notice already, and may withdraw it.
        if (!this.#withdrawn) this.#after(RETRY_MS, () => this.#notify())
        return
      }
      this.#hold = hold
      if (this.#withdrawn) return this.withdraw()
      this.#after(period, () => this.#revoke())
      const detail = `${tenant} (priority ${priority}) preempts a permit of ${this.#permit.holder}`
      client.emit({ recipe: 'pool', event: 'notice', key, token: this.#permit.token, detail })
    } catch {
      if (!this.#withdrawn) this.#after(RETRY_MS, () => this.#notify())
    }
  }

  async #revoke(): Promise<void> {
    const { client } = this.#pool
    const { token, keys } = this.#permit
    const { tenant, priority } = this.#request
    const why = `preempted for tenant ${tenant}, priority ${priority}`
    try {
      for (const key of keys) {
        await client.store.revoke({ target: { key, token }, by: client.holder, why })
      }
    } catch {
      if (!this.#withdrawn) this.#after(RETRY_MS, () => this.#revoke())
    }
  }

  #after(ms: number, run: () => Promise<void>): void {
    const { clock } = this.#pool.client
    this.#timer = clock.timer(clock.now() + ms, () => void run())
  }
}

export function noticeKey(prefix: string, permit: { readonly token: Token }): Key {
  return `${prefix}${permit.token}`
}

export function noticeFrom(by: string, value: string | undefined): PreemptionNotice | undefined {
  const read = objectIn(value)
  if (read === undefined) return undefined
  const { tenant, priority, period } = read
  return { by, tenant: String(tenant), priority: Number(priority), period: Number(period) }
}

/** Parses a notice: which permit is preempted, for which waiter. `undefined` if unreadable. */
export function preemptedFrom(value: string | undefined): PreemptedPermit | undefined {
  const read = objectIn(value)
  if (read === undefined) return undefined
  const { permit, line, keys } = read
  if (typeof permit !== 'number' || typeof line !== 'number' || !Array.isArray(keys))
    return undefined
  return { permit, waiter: line, keys: keys as Key[] }
}
