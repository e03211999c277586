import { type Clock, Leasehold, type LeaseholdOptions, type LeaseStore } from '../../src/index.ts'
import { TestClock } from '../../src/testing/index.ts'
import { FaultyStore } from '../client/faulty-store.ts'

/**
 * Where a recipe's tests play: a store, and the time that it lives in. A recipe knows nothing of
 * stores, so the same tests run in every scene; a scene on a real engine lives in real time, so
 * tests let time `pass` and wait `until` something is so, and never look at a clock of their own.
 */
export interface Scene {
  readonly store: LeaseStore
  readonly clock: Clock
  /** Opens a client on the store. It is closed with the scene. */
  open(holder: string, options?: LeaseholdOptions): Promise<Leasehold>
  /** Lets time pass, and everything happen that is due. */
  pass(ms: number): Promise<void>
  /** Waits until something is so; fails after ten seconds of the scene's time. */
  until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void>
  /** A client's process dies: nothing of it reaches the store any more, and nothing is told. */
  kill(leasehold: Leasehold): void
  close(): Promise<void>
}

export interface SceneKind {
  readonly name: string
  make(): Promise<Scene>
}

/** A store across a link, which a dead client cannot reach any more. */
class Link extends FaultyStore {
  cut(): void {
    this.freeze()
  }
}

/** A scene whose time is moved. */
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
      const end = clock.now() + 10_000
      while (!(await isSo())) {
        if (clock.now() > end) throw new Error(`waited ten seconds, but not so: ${what}`)
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

/** The same store, but as if it were far away: calls carry request ids and may be sent again. */
export function farAway(store: LeaseStore, clock: Clock): LeaseStore {
  return new FaultyStore(store, clock)
}
