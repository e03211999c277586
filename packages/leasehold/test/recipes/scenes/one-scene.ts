import {
  type Clock,
  Leasehold,
  type LeaseholdOptions,
  type LeaseStore,
} from '../../../src/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'

/**
 * The environment of a recipe's tests: a store and its clock. The same tests run in every scene,
 * because a recipe does not know its store. A real engine uses real time, so tests let time `pass`,
 * wait `until` a condition holds, and never read their own clock.
 */
export interface Scene {
  readonly store: LeaseStore
  readonly clock: Clock
  /** Opens a client on the store. It is closed with the scene. */
  open(holder: string, options?: LeaseholdOptions): Promise<Leasehold>
  /** Lets time pass and runs everything that is due. */
  pass(ms: number): Promise<void>
  /** Waits until a condition holds; fails after half a minute of the scene's time. */
  until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void>
  /** Simulates the death of a client's process: its calls no longer reach the store. */
  kill(leasehold: Leasehold): void
  close(): Promise<void>
}

export interface SceneKind {
  readonly name: string
  make(): Promise<Scene>
}

/** A store behind a link that can be cut. */
class Link extends FaultyStore {
  cut(): void {
    this.freeze()
  }
}

/** A scene with virtual time. */
export async function virtual(make: (clock: TestClock) => Promise<LeaseStore> | LeaseStore) {
  const clock = new TestClock()
  return scene(await make(clock), clock, (ms) => clock.advance(ms))
}

export function scene(store: LeaseStore, clock: Clock, pass: (ms: number) => Promise<void>): Scene {
  const links = new Map<Leasehold, Link>()
  return {
    store,
    clock,
    pass,
    async open(holder, options = {}) {
      const link = new Link(store, clock, store.guarantees.inProcess)
      const leasehold = await Leasehold.open(link, { holder, clock, ...options })
      links.set(leasehold, link)
      return leasehold
    },
    async until(what, isSo) {
      const end = clock.now() + 30_000
      while (!(await isSo())) {
        if (clock.now() > end) throw new Error(`waited half a minute, but not so: ${what}`)
        await pass(10)
      }
    },
    kill(leasehold) {
      links.get(leasehold)!.cut()
      links.delete(leasehold)
    },
    async close() {
      for (const leasehold of links.keys()) await leasehold.close()
      await store.close()
    },
  }
}

/** The same store, as if it were remote: calls carry request ids and may be sent again. */
export function farAway(store: LeaseStore, clock: Clock): LeaseStore {
  return new FaultyStore(store, clock)
}
