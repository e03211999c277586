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
import type { HeldPermit } from './permit.ts'
import { PreemptionRequest } from './preemption-request.ts'
import { type Request, type StoredPermit, waiterJson } from './request.ts'

/** How soon a waiter that died is out of the way. */
const QUEUE_TTL_MS = 15_000
const RETRY_MS = 1000
const DAY_MS = 86_400_000

/** What a waiter must know of its pool. */
export interface PendingRequestDependencies {
  readonly client: Client
  readonly name: string
  readonly queueKey: Key
  readonly noticePrefix: string
  noticePeriod(): number
  /** Counts the changes that were seen: a decision that failed is not repeated on the same sight. */
  readonly seen: number
  /** Decides anew, for all who wait here. */
  decide(): void
  take(
    request: Request,
    units: readonly Key[],
    waiter: Token | undefined,
  ): Promise<HeldPermit | Conflict>
  left(pending: PendingRequest): void
}

/**
 * One request on its way: a place in line, then, when it is its schedule, a try to take what it was
 * given. The store decides whether that is free; where it is not, this sight of the pool was behind,
 * and the waiter stays where it is and looks again when it sees more.
 */
export class PendingRequest {
  readonly outcome: Promise<HeldPermit>
  request: Request
  readonly #pool: PendingRequestDependencies
  readonly #notices = new Map<Token, PreemptionRequest>()
  #place: Hold | undefined = undefined
  #taking = false
  #settled = false
  #resolve!: (permit: HeldPermit) => void
  #reject!: (error: unknown) => void
  #deadline: Timer | undefined = undefined
  #retryTimer: Timer | undefined = undefined
  readonly #abort = () => this.fail(this.#abortedError())

  constructor(pool: PendingRequestDependencies, request: Request) {
    this.#pool = pool
    this.request = request
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#await(pool.client.clock.now() + request.wait)
    if (request.signal?.aborted) this.#abort()
    else request.signal?.addEventListener('abort', this.#abort, { once: true })
  }

  /** Its place in line, while it has one. */
  get queueToken(): Token | undefined {
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
        key: this.#pool.queueKey,
        mode: 'shared',
        value: waiterJson(this.request),
      } as const
      const place = await this.#pool.client.hold([claim], { ttl: QUEUE_TTL_MS })
      if (this.#settled) return void place[Symbol.asyncDispose]()
      this.#place = place
      const { signal } = place
      signal.addEventListener('abort', () => this.#placeLost(signal.reason), { once: true })
      this.#pool.decide()
    } catch (error) {
      if (isLeaseholdError(error) && error.outcome === 'unknown')
        this.#retryLater(() => this.join())
      else this.fail(error)
    }
  }

  /** It is its turn. */
  async take(units: readonly Key[]): Promise<void> {
    if (this.#taking || this.#settled) return
    this.#taking = true
    const { seen } = this.#pool
    try {
      const taken = await this.#pool.take(this.request, units, this.queueToken)
      this.#taking = false
      if (taken instanceof Conflict) {
        if (this.#pool.seen !== seen) this.#pool.decide()
      } else if (this.#settled) void taken[Symbol.asyncDispose]()
      else this.#succeed(taken)
    } catch (error) {
      this.#taking = false
      if (isLeaseholdError(error) && error.outcome === 'unknown') {
        this.#retryLater(() => this.#pool.decide())
      } else this.fail(error)
    }
  }

  /**
   * These permits are to be asked back for it, and no others any more; but what is gone already was
   * returned for it, and the notice says so to others until it is taken.
   */
  preempt(permits: readonly StoredPermit[], isGone: (permit: Token) => boolean): void {
    if (this.#settled) return
    for (const [token, notice] of this.#notices) {
      if (permits.some((permit) => permit.token === token) || isGone(token)) continue
      notice.withdraw()
      this.#notices.delete(token)
    }
    const { client, noticePrefix: prefix } = this.#pool
    for (const permit of permits) {
      if (this.queueToken === undefined || this.#notices.has(permit.token)) continue
      const dependencies = { client, prefix, period: this.#pool.noticePeriod() }
      this.#notices.set(
        permit.token,
        new PreemptionRequest(dependencies, permit, this.request, this.queueToken),
      )
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
    this.#retryTimer?.cancel()
    this.request.signal?.removeEventListener('abort', this.#abort)
    void this.#place?.[Symbol.asyncDispose]()
    for (const notice of this.#notices.values()) notice.withdraw()
    this.#pool.left(this)
  }

  #placeLost(error: unknown): void {
    this.#place = undefined
    // They named the place that is lost.
    this.preempt([], () => false)
    const reason = isLeaseholdError(error) ? error.reason : undefined
    if (reason === 'expired' || reason === 'unreachable') void this.join()
    else this.fail(reason === 'closed' ? this.#closedError() : error)
  }

  /** A pending wait keeps the process running, also one without an end. */
  #await(end: number): void {
    const { clock } = this.#pool.client
    this.#deadline = clock.timer(
      Math.min(end, clock.now() + DAY_MS),
      () => (clock.now() >= end ? this.fail(this.#timeoutError()) : this.#await(end)),
      true,
    )
  }

  #retryLater(run: () => void): void {
    if (this.#settled) return
    const { clock, random } = this.#pool.client
    this.#retryTimer = clock.timer(clock.now() + RETRY_MS * (0.5 + random.next()), run)
  }

  #timeoutError(): LeaseholdError {
    const { tenant, wait } = this.request
    return new LeaseholdError(
      'timeout',
      `${show(tenant)} waited ${formatDuration(wait)} for pool ${show(this.#pool.name)}: wait longer, ask for less, or see who holds what with status()`,
    )
  }

  #closedError(): LeaseholdError {
    return new LeaseholdError(
      'closed',
      `the client was closed while ${show(this.request.tenant)} waited for pool ${show(this.#pool.name)}`,
    )
  }

  #abortedError(): LeaseholdError {
    return new LeaseholdError(
      'aborted',
      `the wait for pool ${show(this.#pool.name)} was aborted by the caller's signal`,
      { cause: this.request.signal?.reason },
    )
  }
}
