import { type Client, Conflict, type Hold } from '../../client/index.ts'
import {
  formatDuration,
  isLeaseholdError,
  type Key,
  LeaseholdError,
  show,
  type Timer,
  type Token,
} from '../../port/index.ts'
import { Notice } from './notice.ts'
import type { HeldPermit } from './permit.ts'
import { lineText, type Permitted, type Request } from './request.ts'

/** How soon a waiter that died is out of the way. */
const LINE_TTL_MS = 15_000
const REST_MS = 1000
const DAY_MS = 86_400_000

/** What a waiter must know of its pool. */
export interface WaitingRoom {
  readonly client: Client
  readonly name: string
  readonly lineKey: Key
  readonly noticePrefix: string
  noticePeriod(): number
  /** Counts the changes that were seen: a decision that failed is not repeated on the same sight. */
  readonly seen: number
  /** Decides anew, for all who wait here. */
  look(): void
  take(
    request: Request,
    units: readonly Key[],
    line: Token | undefined,
  ): Promise<HeldPermit | Conflict>
  left(waiting: Waiting): void
}

/**
 * One request on its way: a place in line, then, when it is its turn, a try to take what it was
 * given. The store decides whether that is free; where it is not, this sight of the pool was behind,
 * and the waiter stays where it is and looks again when it sees more.
 */
export class Waiting {
  readonly outcome: Promise<HeldPermit>
  request: Request
  readonly #room: WaitingRoom
  readonly #notices = new Map<Token, Notice>()
  #place: Hold | undefined = undefined
  #taking = false
  #settled = false
  #resolve!: (permit: HeldPermit) => void
  #reject!: (error: unknown) => void
  #deadline: Timer | undefined = undefined
  #rest: Timer | undefined = undefined
  readonly #abort = () => this.fail(this.#abortedError())

  constructor(room: WaitingRoom, request: Request) {
    this.#room = room
    this.request = request
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#await(room.client.clock.now() + request.wait)
    if (request.signal?.aborted) this.#abort()
    else request.signal?.addEventListener('abort', this.#abort, { once: true })
  }

  /** Its place in line, while it has one. */
  get line(): Token | undefined {
    return this.#place?.claimToken
  }

  get settled(): boolean {
    return this.#settled
  }

  /** Takes a place in line; again where it was lost by an outage, for then others have passed. */
  async join(): Promise<void> {
    if (this.#settled) return
    try {
      const claim = {
        key: this.#room.lineKey,
        mode: 'shared',
        value: lineText(this.request),
      } as const
      const place = await this.#room.client.hold([claim], { ttl: LINE_TTL_MS })
      if (this.#settled) return void place[Symbol.asyncDispose]()
      this.#place = place
      const { signal } = place
      signal.addEventListener('abort', () => this.#placeLost(signal.reason), { once: true })
      this.#room.look()
    } catch (error) {
      if (isLeaseholdError(error) && error.outcome === 'unknown') this.#later(() => this.join())
      else this.fail(error)
    }
  }

  /** It is its turn. */
  async take(units: readonly Key[]): Promise<void> {
    if (this.#taking || this.#settled) return
    this.#taking = true
    const { seen } = this.#room
    try {
      const taken = await this.#room.take(this.request, units, this.line)
      this.#taking = false
      if (taken instanceof Conflict) {
        if (this.#room.seen !== seen) this.#room.look()
      } else if (this.#settled) void taken[Symbol.asyncDispose]()
      else this.#succeed(taken)
    } catch (error) {
      this.#taking = false
      if (isLeaseholdError(error) && error.outcome === 'unknown') {
        this.#later(() => this.#room.look())
      } else this.fail(error)
    }
  }

  /**
   * These permits are to be asked back for it, and no others any more; but what is gone already was
   * returned for it, and the notice says so to others until it is taken.
   */
  askBack(permits: readonly Permitted[], isGone: (permit: Token) => boolean): void {
    if (this.#settled) return
    for (const [token, notice] of this.#notices) {
      if (permits.some((permit) => permit.token === token) || isGone(token)) continue
      notice.withdraw()
      this.#notices.delete(token)
    }
    const { client, noticePrefix: prefix } = this.#room
    for (const permit of permits) {
      if (this.line === undefined || this.#notices.has(permit.token)) continue
      const board = { client, prefix, period: this.#room.noticePeriod() }
      this.#notices.set(permit.token, new Notice(board, permit, this.request, this.line))
    }
  }

  fail(error: unknown): void {
    if (this.#settled) return
    this.#leave()
    this.#reject(error)
  }

  #succeed(permit: HeldPermit): void {
    this.#leave()
    this.#resolve(permit)
  }

  #leave(): void {
    this.#settled = true
    this.#deadline?.cancel()
    this.#rest?.cancel()
    this.request.signal?.removeEventListener('abort', this.#abort)
    void this.#place?.[Symbol.asyncDispose]()
    for (const notice of this.#notices.values()) notice.withdraw()
    this.#room.left(this)
  }

  #placeLost(error: unknown): void {
    this.#place = undefined
    // They named the place that is lost.
    this.askBack([], () => false)
    const reason = isLeaseholdError(error) ? error.reason : undefined
    if (reason === 'expired' || reason === 'unreachable') void this.join()
    else this.fail(reason === 'closed' ? this.#closedError() : error)
  }

  /** A pending wait keeps the process running, also one without an end. */
  #await(end: number): void {
    const { clock } = this.#room.client
    this.#deadline = clock.timer(
      Math.min(end, clock.now() + DAY_MS),
      () => (clock.now() >= end ? this.fail(this.#timeoutError()) : this.#await(end)),
      true,
    )
  }

  #later(run: () => void): void {
    if (this.#settled) return
    const { clock, random } = this.#room.client
    this.#rest = clock.timer(clock.now() + REST_MS * (0.5 + random.next()), run)
  }

  #timeoutError(): LeaseholdError {
    const { tenant, wait } = this.request
    return new LeaseholdError(
      'timeout',
      `${show(tenant)} waited ${formatDuration(wait)} for pool ${show(this.#room.name)}: wait longer, ask for less, or see who holds what with status()`,
    )
  }

  #closedError(): LeaseholdError {
    return new LeaseholdError(
      'closed',
      `the client was closed while ${show(this.request.tenant)} waited for pool ${show(this.#room.name)}`,
    )
  }

  #abortedError(): LeaseholdError {
    return new LeaseholdError(
      'aborted',
      `the wait for pool ${show(this.#room.name)} was aborted by the caller's signal`,
      { cause: this.request.signal?.reason },
    )
  }
}
