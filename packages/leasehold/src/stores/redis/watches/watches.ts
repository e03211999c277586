import {
  type Clock,
  type LeaseholdError,
  type LeaseId,
  type Observer,
  type Random,
  type Revision,
  type Token,
  type Watch,
  withTimeout,
} from '../../../port/index.ts'
import { eventPage, standingOf } from '../calls/answers.ts'
import type { Calls } from '../calls/calls.ts'
import { escaped } from '../calls/fields.ts'
import type { Connection, Listener } from '../client.ts'
import { faultOf, unknown } from '../faults.ts'
import { Deadlines } from './deadlines.ts'
import { LeaseWatch } from './lease-watch.ts'
import { PrefixWatch } from './prefix-watch.ts'

/** How long the second connection is kept without watches: there may soon be a new one. */
const LINGER_MS = 500
/** The channel of all events. Processes of older versions publish and listen under this name too. */
const EVENTS = 'news'

/**
 * The watches, and the second connection on which their messages arrive.
 *
 * Redis drops a message without receivers. So when that connection breaks, a lease's watch is
 * interrupted, because its first notice reports all claims and there can be only one. A prefix's
 * watch continues from its last revision once the connection is back. In a cluster the client
 * libraries do not report such breaks: there, as everywhere, everything is read again every few
 * seconds.
 */
export class Watches {
  readonly #connection: Connection
  readonly #calls: Calls
  readonly #clock: Clock
  readonly #timeout: number
  readonly #deadlines: Deadlines
  readonly #leases = new Map<LeaseId, Set<LeaseWatch>>()
  readonly #prefixes = new Set<PrefixWatch>()
  readonly #channels = new Map<string, Promise<void>>()
  #listener: Listener | undefined
  #uid = ''
  /** Counts the breaks, so that the end of one is not mistaken for the end of another. */
  #breaks = 0

  constructor(
    connection: Connection,
    calls: Calls,
    { clock, random, timeout }: { clock: Clock; random: Random; timeout: number },
  ) {
    this.#connection = connection
    this.#calls = calls
    this.#clock = clock
    this.#timeout = timeout
    this.#deadlines = new Deadlines(clock, random, (all) => this.#look(all))
  }

  /** What the answer to any call reported besides its result. */
  reported(remaining: number, uid: string): void {
    const isOther = this.#uid !== '' && this.#uid !== uid
    this.#uid = uid
    if (isOther) {
      // The channels have the name of the data, so a new watch needs other channels.
      this.#hangUp()
      this.#interrupt(unknown('Redis has lost its data, or they were replaced: open a new watch'))
    }
    this.#deadlines.answered(remaining)
  }

  /** A claim of this lease waits: even if a message is lost, its turn is noticed. */
  waits(lease: LeaseId, token: Token, keys: number): void {
    for (const watch of this.#leases.get(lease) ?? []) watch.waits(token, keys)
  }

  watchLease(lease: LeaseId, observer: Observer): Watch {
    const watch: LeaseWatch = new LeaseWatch(lease, observer, () => this.#removeLease(watch))
    const watches = this.#leases.get(lease) ?? new Set()
    this.#leases.set(lease, watches.add(watch))
    void this.#open(watch, [lease, 'due'], () => this.#readStanding(lease, watch))
    return watch
  }

  watchPrefix(prefix: string, from: Revision | undefined, observer: Observer): Watch {
    const ask = (after: Revision | undefined) =>
      this.#calls.ask(['f', after === undefined ? '' : String(after)], eventPage)
    const watch: PrefixWatch = new PrefixWatch(prefix, observer, ask, () => {
      this.#prefixes.delete(watch)
      this.#leave(EVENTS, this.#prefixes.size === 0)
    })
    this.#prefixes.add(watch)
    // Subscribed at once: everything that is called after this must be received, however long it takes.
    const start = from === undefined ? ask(undefined) : undefined
    start?.catch(() => {})
    void this.#open(watch, [EVENTS, 'due'], async () =>
      watch.start(from ?? (await start!).revision),
    )
    return watch
  }

  close(error: LeaseholdError): void {
    this.#deadlines.stop()
    this.#interrupt(error)
    this.#hangUp()
  }

  async #open(
    watch: LeaseWatch | PrefixWatch,
    channels: readonly string[],
    start: () => Promise<void>,
  ): Promise<void> {
    this.#deadlines.start()
    try {
      await Promise.all(channels.map((channel) => this.#join(channel)))
      if (watch.isOpen) await start()
    } catch (error) {
      watch.interrupt(faultOf(error))
    }
  }

  async #readStanding(lease: LeaseId, watch: LeaseWatch): Promise<void> {
    watch.onStanding(await this.#calls.ask(['s', escaped(lease)], standingOf))
  }

  #join(channel: string): Promise<void> {
    const known = this.#channels.get(channel)
    if (known) return known
    const joined = this.#subscribe(`${this.#uid}:${channel}`)
    this.#channels.set(channel, joined)
    joined.catch(() => this.#part(channel, joined))
    return joined
  }

  /** A channel can be left only if it was joined, or may have been; then a new watch may want it again. */
  #part(channel: string, joined: Promise<void>): void {
    if (this.#channels.get(channel) !== joined) return
    this.#channels.delete(channel)
    const listener = this.#listener
    const name = `${this.#uid}:${channel}`
    const leave = () => {
      if (!this.#channels.has(channel)) listener?.unsubscribe(name).catch(() => {})
    }
    joined.then(leave, leave)
  }

  async #subscribe(channel: string): Promise<void> {
    this.#listener ??= this.#connection.listen({
      message: (from, text) => this.#receive(from.slice(this.#uid.length + 1), text),
      down: () => this.#down(),
      up: () => this.#up(),
    })
    const listener = this.#listener
    const late = () => unknown('no second connection to Redis could be made in time')
    await this.#inTime(listener.opened, late).catch((error: unknown) => {
      if (this.#listener === listener) this.#hangUp()
      throw error
    })
    await this.#inTime(listener.subscribe(channel), () =>
      unknown('Redis did not accept the subscription in time'),
    )
  }

  #inTime(done: Promise<unknown>, late: () => LeaseholdError): Promise<unknown> {
    return withTimeout(this.#clock, this.#clock.now() + this.#timeout, done, late, false)
  }

  #leave(channel: string, isEmpty: boolean): void {
    const joined = this.#channels.get(channel)
    if (isEmpty && joined) this.#part(channel, joined)
    if (!this.#isIdle) return
    this.#deadlines.stop()
    this.#clock.timer(this.#clock.now() + LINGER_MS, () => {
      if (this.#isIdle) this.#hangUp()
    })
  }

  get #isIdle(): boolean {
    return this.#leases.size === 0 && this.#prefixes.size === 0
  }

  /** Without watches the second connection is closed: it would keep the process running. */
  #hangUp(): void {
    this.#listener?.close()
    this.#listener = undefined
    this.#channels.clear()
    this.#breaks++
  }

  #removeLease(watch: LeaseWatch): void {
    const watches = this.#leases.get(watch.lease)
    if (!watches?.delete(watch) || watches.size > 0) return
    this.#leases.delete(watch.lease)
    this.#leave(watch.lease, true)
  }

  #receive(channel: string, text: string): void {
    if (channel === 'due') this.#deadlines.reported(text === '' ? Infinity : Number(text))
    else if (channel === EVENTS) for (const watch of this.#prefixes) watch.receive(text)
    else for (const watch of [...(this.#leases.get(channel) ?? [])]) watch.receive(text)
  }

  #down(): void {
    const error = unknown('the connection for Redis messages broke: open a new watch')
    for (const watch of this.#leaseWatches()) watch.interrupt(error)
    const number = ++this.#breaks
    this.#clock.timer(this.#clock.now() + this.#timeout, () => {
      if (this.#breaks === number) for (const watch of [...this.#prefixes]) watch.interrupt(error)
    })
  }

  #up(): void {
    this.#breaks++
    for (const watch of this.#prefixes) if (watch.isStarted) void watch.catchUp()
    this.#deadlines.answered(0)
  }

  async #look(all: boolean): Promise<void> {
    const asked = [this.#calls.ask(['w'], () => {})]
    if (all) {
      for (const watch of this.#prefixes) if (watch.isStarted) asked.push(watch.catchUp())
      for (const watch of this.#leaseWatches()) {
        if (watch.isWaiting) asked.push(this.#readStanding(watch.lease, watch))
      }
    }
    await Promise.all(asked)
  }

  #leaseWatches(): LeaseWatch[] {
    return [...this.#leases.values()].flatMap((watches) => [...watches])
  }

  #interrupt(error: LeaseholdError): void {
    for (const watch of [...this.#leaseWatches(), ...this.#prefixes]) watch.interrupt(error)
  }
}
