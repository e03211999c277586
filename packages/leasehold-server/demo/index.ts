import {
  isLeaseholdError,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Timer,
} from 'leasehold/port'
import type { DemoOptions } from './agent.ts'
import { Fleet, HOLDER, PREFIXES } from './fleet.ts'

export type { OpenCodingAgent } from './coding-agents.ts'
export type { DemoOptions }
export type DemoState = 'off' | 'running' | 'ending'

const WHY = 'the demo has ended'
/** The longest time that a stopping server waits for the fleet to end. */
const STOP_MS = 2000

/**
 * A fleet that runs in the server, to show leases on an empty server. All its keys and holders are
 * named `demo`. Ending it revokes everything it holds, including the remains of an earlier fleet that
 * was not ended.
 */
export class Demo {
  readonly #options: DemoOptions
  #fleet: Fleet | undefined
  #starting: Promise<void> | undefined
  #ending: Promise<void> | undefined
  #isStopping = false

  constructor(options: DemoOptions) {
    this.#options = options
  }

  get state(): DemoState {
    if (this.#ending !== undefined) return 'ending'
    return this.#fleet === undefined ? 'off' : 'running'
  }

  /** Resolves when the agents have started. A second call does nothing. */
  async start(): Promise<void> {
    await this.#ending
    // Nothing would end a fleet that starts after the server has stopped.
    if (this.#isStopping) throw new LeaseholdError('closed', 'the server is stopping; try again')
    if (this.#fleet !== undefined) return this.#starting
    this.#fleet = new Fleet(this.#options)
    this.#starting = this.#fleet.begin()
    try {
      await this.#starting
    } catch (error) {
      // Half a fleet would look like a running one.
      await this.end().catch(() => {})
      throw error
    }
  }

  /** Resolves when nothing of the demo is left. */
  end(): Promise<void> {
    this.#ending ??= this.#end().finally(() => {
      this.#ending = undefined
    })
    return this.#ending
  }

  /** The server stops. */
  async stop(): Promise<void> {
    this.#isStopping = true
    if (this.state === 'off') return
    const { clock } = this.#options
    let timer: Timer | undefined
    const late = new Promise<void>((resolve) => {
      timer = clock.timer(clock.now() + STOP_MS, resolve, true)
    })
    await Promise.race([this.end().catch(() => {}), late])
    timer?.cancel()
  }

  async #end(): Promise<void> {
    const fleet = this.#fleet
    await this.#starting?.catch(() => {})
    await fleet?.end()
    this.#fleet = undefined
    await clear(this.#options.store)
  }
}

/** Revokes all demo leases. A killed agent may have left one without claims. */
async function clear(store: LeaseStore): Promise<void> {
  for (const prefix of PREFIXES) {
    const leases = new Set<LeaseId>()
    let after: string | undefined
    for (let more = true; more; ) {
      const page = await store.read({ prefix, after })
      for (const { key, count, claims } of page.keys) {
        const all = count > claims.length ? (await store.read({ key })).claims : claims
        for (const { holder, lease } of all) if (holder.startsWith(HOLDER)) leases.add(lease)
      }
      more = page.more
      after = page.keys.at(-1)?.key
    }
    for (const lease of leases) await revoke(store, lease)
  }
  let after: LeaseId | undefined
  for (let more = true; more; ) {
    const page = await store.read({ leases: true, after })
    for (const { id, holder } of page.leases) if (holder.startsWith(HOLDER)) await revoke(store, id)
    more = page.more
    after = page.leases.at(-1)?.id
  }
}

async function revoke(store: LeaseStore, lease: LeaseId): Promise<void> {
  try {
    await store.revoke({ target: { lease }, by: `${HOLDER}stage`, why: WHY })
  } catch (error) {
    // The lease has already ended, by itself or with its parent.
    if (!isLeaseholdError(error)) throw error
    if (error.code !== 'lease-ended' && error.code !== 'lease-not-found') throw error
  }
}
