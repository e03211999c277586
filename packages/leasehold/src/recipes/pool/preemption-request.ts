import { type Client, Conflict, type Hold } from '../../client/index.ts'
import type { Key, Timer, Token } from '../../port/index.ts'
import { objectIn } from '../json.ts'
import type { PreemptionNotice } from './permit.ts'
import type { Request, StoredPermit } from './request.ts'
import type { PreemptedPermit } from './schedule/schedule.ts'

/** A notice ends with whoever asks, soon after its process died. */
const NOTICE_TTL_MS = 15_000
const RETRY_MS = 1000

/** Who gives notice, and where. */
export interface PreemptionDependencies {
  readonly client: Client
  readonly prefix: string
  readonly period: number
}

/**
 * Asks for one permit back: a claim where its holder sees it, and when the period is over its keys
 * are revoked. The notice is held by the waiter that asks: where that gives up or dies the notice is
 * gone, and the permit stays.
 */
export class PreemptionRequest {
  readonly #dependencies: PreemptionDependencies
  readonly #permit: StoredPermit
  readonly #request: Request
  readonly #waiter: Token
  #hold: Hold | undefined = undefined
  #timer: Timer | undefined = undefined
  #withdrawn = false

  constructor(
    dependencies: PreemptionDependencies,
    permit: StoredPermit,
    request: Request,
    waiter: Token,
  ) {
    this.#dependencies = dependencies
    this.#waiter = waiter
    this.#permit = permit
    this.#request = request
    void this.#give()
  }

  withdraw(): void {
    this.#withdrawn = true
    this.#timer?.cancel()
    void this.#hold?.[Symbol.asyncDispose]()
  }

  async #give(): Promise<void> {
    const { client, period } = this.#dependencies
    const { tenant, priority } = this.#request
    const key = noticeKey(this.#dependencies.prefix, this.#permit)
    const { token: permit, keys } = this.#permit
    const value = JSON.stringify({ tenant, priority, period, permit, line: this.#waiter, keys })
    try {
      const hold = await client.tryHold([{ key, value }], { ttl: NOTICE_TTL_MS })
      if (hold instanceof Conflict) {
        // Somebody else has asked for it already, and may be about to take that back.
        if (!this.#withdrawn) this.#in(RETRY_MS, () => this.#give())
        return
      }
      this.#hold = hold
      if (this.#withdrawn) return this.withdraw()
      this.#in(period, () => this.#revoke())
      const detail = `${tenant} (priority ${priority}) asks ${this.#permit.holder} for it back`
      client.emit({ recipe: 'pool', event: 'notice', key, token: this.#permit.token, detail })
    } catch {
      if (!this.#withdrawn) this.#in(RETRY_MS, () => this.#give())
    }
  }

  async #revoke(): Promise<void> {
    const { client } = this.#dependencies
    const { token, keys } = this.#permit
    const { tenant, priority } = this.#request
    const why = `asked back for tenant ${tenant}, priority ${priority}`
    try {
      for (const key of keys) {
        await client.store.revoke({ target: { key, token }, by: client.holder, why })
      }
    } catch {
      if (!this.#withdrawn) this.#in(RETRY_MS, () => this.#revoke())
    }
  }

  #in(ms: number, run: () => Promise<void>): void {
    const { clock } = this.#dependencies.client
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
  return {
    by,
    tenant: String(tenant),
    priority: Number(priority),
    period: Number(period),
  }
}

/** What was asked back for whom, or `undefined` where the text is not one that this program wrote. */
export function preemptedFrom(value: string | undefined): PreemptedPermit | undefined {
  const read = objectIn(value)
  if (read === undefined) return undefined
  const { permit, line, keys } = read
  if (typeof permit !== 'number' || typeof line !== 'number' || !Array.isArray(keys))
    return undefined
  return { permit, waiter: line, keys: keys as Key[] }
}
