import {
  type Clock,
  LeaseholdError,
  type Random,
  type Timer,
  withTimeout,
} from '../../../port/index.ts'
import { unanswered } from '../calls/call-deadlines.ts'
import type { Connection } from '../client.ts'
import type { Database } from '../database.ts'
import { faultOf } from '../faults.ts'

/** How often to check that notifications arrive; at once after a failure. */
const CHECK_MS = 30_000
/** Between two attempts to listen again. */
const REST_MS = 250

export interface ListenConnectionOptions {
  readonly connection: Connection
  readonly database: Database
  readonly channel: string
  readonly clock: Clock
  readonly random: Random
  readonly timeout: number
  receive(payload: string): void
  /** Notifications may have been missed until now. */
  restored(): void
}

/**
 * The connection that listens. It is checked from time to time, by notifying itself: a pooler may
 * accept a LISTEN and never deliver anything, and a connection may die without an error. When it is
 * lost, it is opened again. In the meantime nothing is missed for long, because the store also polls.
 */
export class ListenConnection {
  readonly #options: ListenConnectionOptions
  readonly #name: string
  #stop: (() => void) | undefined
  /** The current attempt to listen. */
  #listening: Promise<void> | undefined
  /** Ends the current check. */
  #checked: ((received: boolean) => void) | undefined
  #timer: Timer | undefined
  #isUp = false
  #busy = false
  #closed = false

  constructor(options: ListenConnectionOptions) {
    this.#options = options
    this.#name = `p${options.random.id()}`
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /** Listens for the first time, and makes sure that notifications arrive. */
  async open(): Promise<void> {
    await this.#listen().catch((error: unknown) => {
      this.close()
      throw error
    })
    if (await this.#receives()) {
      this.#isUp = true
      this.#later(CHECK_MS)
      return
    }
    this.close()
    throw new LeaseholdError(
      'unsupported',
      'LISTEN was accepted, but a notification was not received: the connection goes through a pooler. Open the store with listen: false, or give listen a client that is connected to PostgreSQL itself',
    )
  }

  /** Something failed elsewhere that may have affected this connection, too. */
  suspect(): void {
    if (!this.#closed && !this.#busy) this.#later(REST_MS)
  }

  close(): void {
    this.#closed = true
    this.#isUp = false
    this.#timer?.cancel()
    this.#checked?.(false)
    this.#stop?.()
    this.#stop = undefined
  }

  /**
   * A client that is not connected yet may wait forever. `listen` does not. But the next attempt
   * continues what the last one began; otherwise they would pile up.
   */
  #listen(): Promise<void> {
    const { clock, timeout } = this.#options
    this.#listening ??= this.#begin().finally(() => {
      this.#listening = undefined
    })
    return withTimeout(clock, clock.now() + timeout, this.#listening, () => unanswered(timeout))
  }

  async #begin(): Promise<void> {
    const { connection, channel, timeout } = this.#options
    try {
      const stop = await connection.listen(
        channel,
        (payload) => this.#receive(payload),
        (isUp) => this.#changed(isUp),
        timeout,
      )
      if (this.#closed) stop()
      else this.#stop = stop
    } catch (error) {
      throw faultOf(error)
    }
  }

  #receive(payload: string): void {
    if (payload === this.#name) this.#checked?.(true)
    else if (!payload.startsWith('p')) this.#options.receive(payload)
  }

  #changed(isUp: boolean): void {
    if (this.#closed) return
    if (isUp) this.#options.restored()
    else {
      this.#isUp = false
      this.#stop = undefined
      this.suspect()
    }
  }

  /** Notifies itself, and returns whether that arrived. */
  #receives(): Promise<boolean> {
    const { clock, timeout, database, channel } = this.#options
    return new Promise((resolve) => {
      const end = (received: boolean) => {
        timer.cancel()
        this.#checked = undefined
        resolve(received)
      }
      const timer = clock.timer(clock.now() + timeout, () => end(false), true)
      this.#checked = end
      database.run('select pg_notify($1, $2)::text', [channel, this.#name]).catch(() => end(false))
    })
  }

  #later(ms: number): void {
    const { clock } = this.#options
    this.#timer?.cancel()
    this.#timer = clock.timer(clock.now() + ms, () => void this.#tryOut())
  }

  async #tryOut(): Promise<void> {
    this.#busy = true
    const wasUp = this.#isUp
    this.#isUp = this.#stop !== undefined && (await this.#receives())
    if (!this.#isUp && !this.#closed) {
      this.#stop?.()
      this.#stop = undefined
      this.#isUp = await this.#listen().then(
        () => this.#receives(),
        () => false,
      )
    }
    this.#busy = false
    if (this.#closed) return this.close()
    this.#later(this.#isUp ? CHECK_MS : REST_MS)
    if (this.#isUp && !wasUp) this.#options.restored()
  }
}
