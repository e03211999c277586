import {
  isLeaseholdError,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Timer,
} from 'leasehold/port'
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
  #isStopping = false

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
    // A fleet of a server that has stopped would have nobody to end it.
    if (this.#isStopping) throw new LeaseholdError('closed', 'the server stops: ask again')
    if (this.#fleet !== undefined) return this.#starting
    this.#fleet = new Fleet(this.#world)
    this.#starting = this.#fleet.begin()
    try {
      await this.#starting
    } catch (error) {
      // What there is of it by now would look as if it ran.
      await this.end().catch(() => {})
      throw error
    }
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
    this.#isStopping = true
    if (this.state === 'off') return
    const { clock } = this.#world
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
