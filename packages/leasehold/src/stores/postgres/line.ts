import { type Clock, LeaseholdError, type Random, type Timer } from '../../port/index.ts'
import { answerBy, unanswered } from './call-deadlines.ts'
import type { Connection } from './client.ts'
import type { Database } from './database.ts'
import { faultOf } from './faults.ts'

/** How often it is tried whether what is notified is heard; at once where there was trouble. */
const TRIAL_MS = 30_000
/** Between two attempts to listen again. */
const REST_MS = 250

export interface LineOptions {
  readonly connection: Connection
  readonly database: Database
  readonly channel: string
  readonly clock: Clock
  readonly random: Random
  readonly timeout: number
  hear(payload: string): void
  /** Nothing may have been heard for a while, until now. */
  restored(): void
}

/**
 * The connection that listens. It is tried from time to time, by notifying itself: a pooler may
 * accept a LISTEN and never pass anything on, and a connection may be dead without a word. When it is
 * lost it is made again; meanwhile nothing is missed for long, because there is a poll as well.
 */
export class Line {
  readonly #options: LineOptions
  readonly #name: string
  #stop: (() => void) | undefined
  /** The attempt to listen that is under way. */
  #listening: Promise<void> | undefined
  /** Ends the trial under way. */
  #tried: ((heard: boolean) => void) | undefined
  #timer: Timer | undefined
  #isUp = false
  #busy = false
  #closed = false

  constructor(options: LineOptions) {
    this.#options = options
    this.#name = `p${options.random.id()}`
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /** Listens for the first time, and is sure that it hears. */
  async open(): Promise<void> {
    await this.#listen().catch((error: unknown) => {
      this.close()
      throw error
    })
    if (await this.#hears()) {
      this.#isUp = true
      this.#later(TRIAL_MS)
      return
    }
    this.close()
    throw new LeaseholdError(
      'unsupported',
      'LISTEN was accepted, but a notification was not heard: the connection goes through a pooler. Open the store with listen: false, or give listen a client that is connected to PostgreSQL itself',
    )
  }

  /** Something failed elsewhere that may have hit this connection as well. */
  suspect(): void {
    if (!this.#closed && !this.#busy) this.#later(REST_MS)
  }

  close(): void {
    this.#closed = true
    this.#isUp = false
    this.#timer?.cancel()
    this.#tried?.(false)
    this.#stop?.()
    this.#stop = undefined
  }

  /**
   * A client that has yet to be connected may wait for ever. Whoever listens does not; but the next
   * attempt goes on with what the last one has begun, or they would gather.
   */
  #listen(): Promise<void> {
    const { clock, timeout } = this.#options
    this.#listening ??= this.#begin().finally(() => {
      this.#listening = undefined
    })
    return answerBy(clock, clock.now() + timeout, this.#listening, () => unanswered(timeout))
  }

  async #begin(): Promise<void> {
    const { connection, channel, timeout } = this.#options
    try {
      const stop = await connection.listen(
        channel,
        (payload) => this.#hear(payload),
        (isUp) => this.#changed(isUp),
        timeout,
      )
      if (this.#closed) stop()
      else this.#stop = stop
    } catch (error) {
      throw faultOf(error)
    }
  }

  #hear(payload: string): void {
    if (payload === this.#name) this.#tried?.(true)
    else if (!payload.startsWith('p')) this.#options.hear(payload)
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

  /** Notifies itself, and answers whether that was heard. */
  #hears(): Promise<boolean> {
    const { clock, timeout, database, channel } = this.#options
    return new Promise((resolve) => {
      const end = (heard: boolean) => {
        timer.cancel()
        this.#tried = undefined
        resolve(heard)
      }
      const timer = clock.timer(clock.now() + timeout, () => end(false), true)
      this.#tried = end
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
    this.#isUp = this.#stop !== undefined && (await this.#hears())
    if (!this.#isUp && !this.#closed) {
      this.#stop?.()
      this.#stop = undefined
      this.#isUp = await this.#listen().then(
        () => this.#hears(),
        () => false,
      )
    }
    this.#busy = false
    if (this.#closed) return this.close()
    this.#later(this.#isUp ? TRIAL_MS : REST_MS)
    if (this.#isUp && !wasUp) this.#options.restored()
  }
}
