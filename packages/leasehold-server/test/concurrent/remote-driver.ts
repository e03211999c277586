import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { type Driver, type History, type Rules, SeededRandom, TestClock } from 'leasehold/testing'
import { createServer, type LeaseServer } from '../../src/index.ts'
import { CutWire, type Direction } from './cut-wire.ts'

export type RemoteFault =
  /** The connection of a store breaks now. */
  | { readonly do: 'cut'; readonly store: number }
  /** It breaks after this many more bytes in one direction, within requests or answers. */
  | {
      readonly do: 'cut after'
      readonly store: number
      readonly direction: Direction
      readonly bytes: number
    }
  /** The server stops and another one serves the same store at the same address. */
  | { readonly do: 'restart' }
  /** The connection of the store whose leases are tied to it breaks. */
  | { readonly do: 'leave' }

/** Small rings: the room for large ones takes longer to make than a schedule to run. */
const limits = { history: 256, events: 1024 }
/** How fast the clients' time runs: milliseconds in one turn of the event loop. */
const TURN_MS = 5
/** After this many turns nothing more arrives. */
const TURNS_MAX = 20_000
/** Of these stores the last one's leases are tied to its connection. */
export const STORES = 3
const TIED = STORES - 1

interface Client {
  readonly wire: CutWire
  readonly clock: TestClock
  readonly store: LeaseStore
}

/**
 * Drives stores on a server in this process. The clock of the served store advances only while no call
 * is in flight. The clients have their own clocks, which run fast: their pauses between two attempts
 * to connect do not affect leases.
 */
export class RemoteDriver implements Driver<RemoteFault> {
  readonly prefix = 'run/'
  readonly rules: Rules
  readonly #clock: TestClock
  readonly #inner: LeaseStore
  #server: LeaseServer
  #clients: readonly Client[] = []
  readonly #broken = new Set<number>()
  #passed = 0
  /** The calls before this number were made before the tied store's connection broke last. */
  #left = 0

  private constructor(clock: TestClock, inner: LeaseStore, server: LeaseServer, after: number) {
    this.#clock = clock
    this.#inner = inner
    this.#server = server
    this.rules = { limits, exactAfter: after, inOrder: 'calls', times: 'all' }
  }

  static async open(seed: number): Promise<RemoteDriver> {
    const clock = new TestClock()
    const inner = memoryStore({ clock, limits })
    const server = await createServer({ store: inner, limits, port: 0 })
    const { revision } = await inner.read({ key: 'none' })
    const driver = new RemoteDriver(clock, inner, server, revision)
    const random = new SeededRandom(seed)
    const connecting = Array.from({ length: STORES }, (_, at) =>
      driver.#connect(random, at === TIED),
    )
    driver.#clients = await Promise.all(connecting)
    return driver
  }

  get stores(): readonly LeaseStore[] {
    return this.#clients.map(({ store }) => store)
  }

  now(): number {
    return this.#clock.now()
  }

  isBroken(store: number): boolean {
    return this.#broken.has(store)
  }

  /** A little longer than requested, and different each time, so that no call meets a deadline. */
  async pass(ms: number): Promise<void> {
    await this.until(() => this.#isCalm())
    for (const [at, { wire }] of this.#clients.entries()) {
      if (!wire.isArmed) this.#broken.delete(at)
    }
    await this.#clock.advance(ms + 0.01 * ++this.#passed)
    // The notices about that have reached the server, but not the clients.
    await this.#turn()
  }

  async until(done: () => boolean): Promise<void> {
    for (let turns = 0; !done(); turns++) {
      if (turns > TURNS_MAX) throw new Error('an answer or a notice does not come')
      await this.#turn()
    }
  }

  async fault(fault: RemoteFault, history: History): Promise<void> {
    switch (fault.do) {
      case 'cut':
        this.#break(fault.store, history)
        this.#clients[fault.store]!.wire.cut()
        break
      case 'cut after':
        this.#break(fault.store, history)
        this.#clients[fault.store]!.wire.cutAfter(fault.direction, fault.bytes)
        break
      case 'restart':
        await this.#restart(history)
        break
      case 'leave':
        await this.#leave(history)
    }
  }

  async calm(history: History): Promise<void> {
    for (const { wire } of this.#clients) wire.disarm()
    await this.until(() => history.pending.length === 0)
  }

  async close(): Promise<void> {
    let closed = 0
    for (const { store } of this.#clients) void store.close().then(() => closed++)
    await this.until(() => closed === this.#clients.length)
    for (const { wire } of this.#clients) wire.close()
    await this.#server.close()
    await this.#inner.close()
  }

  /** Every connection that broke is known to be broken: nothing of it is carried out any more. */
  #isCalm(): boolean {
    const open = this.#clients.reduce((sum, { wire }) => sum + wire.connections, 0)
    return this.#server.stats.connections === open
  }

  async #turn(): Promise<void> {
    for (const { clock } of this.#clients) await clock.advance(TURN_MS)
  }

  #break(store: number, history: History): void {
    this.#broken.add(store)
    history.break(store)
  }

  async #restart(history: History): Promise<void> {
    for (const store of this.#clients.keys()) this.#break(store, history)
    const { port } = new URL(this.#server.url)
    let server: LeaseServer | undefined
    void this.#server
      .close()
      .then(() => createServer({ store: this.#inner, limits, port: Number(port) }))
      .then((next) => {
        server = next
      })
    await this.until(() => server !== undefined)
    this.#server = server!
  }

  /** The server ends the leases that were granted through the store that has left. */
  async #leave(history: History): Promise<void> {
    await this.until(() => history.pending.length === 0 && this.#isCalm())
    // After a restart the client ties its leases to the next connection, before its second call.
    await this.#readThrough(TIED)
    await this.#readThrough(TIED)
    const leases = new Set<string>()
    for (const { asked, store, outcome } of history.entries.slice(this.#left)) {
      if (asked.method !== 'grant' || store !== TIED || outcome?.is !== 'answered') continue
      const answer = outcome.answer as { readonly outcome: string; readonly lease: string }
      if (answer.outcome === 'granted') leases.add(answer.lease)
    }
    this.#left = history.entries.length
    this.#break(TIED, history)
    const ends = [...leases].map((lease) => {
      const why = "its holder's connection has closed"
      const argument = { target: { lease }, by: 'leasehold-server', why }
      const entry = history.begin(TIED, { method: 'revoke', argument }, this.now())
      entry.isFree = true
      return entry
    })
    this.#clients[TIED]!.wire.cut()
    await this.until(() => this.#clients[TIED]!.wire.connections === 0)
    await this.until(() => this.#isCalm())
    for (const entry of ends) history.end(entry, { is: 'done' })
  }

  /** A call that is not part of the history. */
  async #readThrough(store: number): Promise<void> {
    let isOver = false
    const reading = this.stores[store]!.read({ key: 'none' }).finally(() => {
      isOver = true
    })
    await this.until(() => isOver)
    await reading
  }

  async #connect(random: SeededRandom, tied: boolean): Promise<Client> {
    const wire = await new CutWire(this.#server.url).start()
    const clock = new TestClock()
    const options = { clock, random: random.fork(), timeout: '10m', silence: '1h', tied } as const
    return { wire, clock, store: await remoteStore(wire.url, options) }
  }
}
