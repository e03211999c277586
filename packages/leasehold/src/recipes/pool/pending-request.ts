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

/** How soon a dead waiter leaves the queue. */
const QUEUE_TTL_MS = 15_000
const RETRY_MS = 1000
const DAY_MS = 86_400_000

export interface PendingRequestDependencies {
  readonly client: Client
  readonly name: string
  readonly queueKey: Key
  readonly noticePrefix: string
  noticePeriod(): number
  /** Counts observed changes: a failed decision is not repeated on the same state. */
  readonly seen: number
  /** Decides again for all requests of this process. */
  decide(): void
  take(
    request: Request,
    units: readonly Key[],
    waiter: Token | undefined,
  ): Promise<HeldPermit | Conflict>
  left(pending: PendingRequest): void
}

/**
 * A request that waits for resources. It joins the queue, and when it is next, it tries to take its
 * resources. The store decides whether they are free. If not, this process has seen an outdated
 * state; the request stays in the queue and decides again after the next change.
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

  /** The token of its claim in the queue, while it has one. */
  get queueToken(): Token | undefined {
    return this.#place?.claimToken
  }

  get settled(): boolean {
    return this.#settled
  }

  /** Joins the queue; again if an outage cost the claim, at the end of the queue. */
  async join(): Promise<void> {
    if (this.#settled) return
    try {
      const { client, queueKey: key } = this.#pool
      const claim = { key, mode: 'shared', value: waiterJson(this.request) } as const
      const place = await client.hold([claim], { ttl: QUEUE_TTL_MS })
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

  /** Takes the resources that it was given. */
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
   * Preempts exactly these permits and withdraws other notices. The notice for a permit that is
   * already gone stays: it reserves the resources for this request until they are taken.
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
    // The notices name the queue claim that is lost.
    this.preempt([], () => false)
    const reason = isLeaseholdError(error) ? error.reason : undefined
    if (reason === 'expired' || reason === 'unreachable') void this.join()
    else this.fail(reason === 'closed' ? this.#closedError() : error)
  }

  /** A pending wait keeps the process running, even without a deadline. */
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
      `${show(tenant)} waited ${formatDuration(wait)} for pool ${show(this.#pool.name)}. Wait longer, ask for less, or check status() for who holds what`,
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
