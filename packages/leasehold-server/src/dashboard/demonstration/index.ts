import type { LeaseId, LeaseStore } from 'leasehold/port'
import { isLeaseholdError } from 'leasehold/port'
import type { DemonstrationState } from '../sample.ts'
import type { World } from './agent.ts'
import { Fleet, HOLDER, PREFIXES } from './fleet.ts'

const WHY = 'the demonstration has ended'
/** A server that stops does not wait longer than this for the fleet to go. */
const STOP_MS = 2000

/**
 * A fleet in this server, for those who want to see what a lease does before they have one. All of
 * its keys and holders are called `demo`; ending it removes all that it holds, and also what is left
 * of one that a server did not get to end.
 */
export class Demonstration {
  readonly #world: World
  #fleet: Fleet | undefined
  #starting: Promise<void> | undefined
  #ending: Promise<void> | undefined

  constructor(world: World) {
    this.#world = world
  }

  get state(): DemonstrationState {
    if (this.#ending !== undefined) return 'ending'
    return this.#fleet === undefined ? 'off' : 'running'
  }

  /** Fulfilled when the first of them are there. Starting twice does nothing more. */
  async start(): Promise<void> {
    await this.#ending
    if (this.#fleet !== undefined) return this.#starting
    this.#fleet = new Fleet(this.#world)
    this.#starting = this.#fleet.begin()
    await this.#starting
  }

  /** Fulfilled when nothing of it is left. */
  end(): Promise<void> {
    this.#ending ??= this.#end().finally(() => {
      this.#ending = undefined
    })
    return this.#ending
  }

  /** The server stops. */
  async stop(): Promise<void> {
    if (this.#fleet === undefined) return
    const { clock } = this.#world
    const late = new Promise<void>((resolve) => {
      clock.timer(clock.now() + STOP_MS, resolve, true)
    })
    await Promise.race([this.end().catch(() => {}), late])
  }

  async #end(): Promise<void> {
    const fleet = this.#fleet
    await this.#starting?.catch(() => {})
    await fleet?.end()
    this.#fleet = undefined
    await clear(this.#world.store)
  }
}

/** Ends all leases of the demonstration that hold or wait for something. */
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
}

async function revoke(store: LeaseStore, lease: LeaseId): Promise<void> {
  try {
    await store.revoke({ target: { lease }, by: `${HOLDER}stage`, why: WHY })
  } catch (error) {
    // It has ended meanwhile, by itself or with another.
    if (!isLeaseholdError(error)) throw error
    if (error.code !== 'lease-ended' && error.code !== 'lease-not-found') throw error
  }
}
