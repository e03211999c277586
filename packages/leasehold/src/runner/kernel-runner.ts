import { isRefused, Kernel, type Refused } from '../kernel/index.ts'
import {
  type Busy,
  type Capped,
  type Changed,
  type Claimed,
  type ClaimRequest,
  type Clock,
  checkWatch,
  type Granted,
  type GrantRequest,
  type Guarantees,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Limits,
  type Observer,
  type Query,
  type Reading,
  type Refusal,
  type ReleaseRequest,
  type Renewed,
  type Revision,
  type Revoked,
  type RevokeRequest,
  type Timer,
  type UpdateRequest,
  type Watch,
  type WatchTarget,
} from '../port/index.ts'
import type { Durability } from './durability.ts'
import { Outbox } from './outbox.ts'

/** How many leases one sweep checks before other work gets its turn. */
const SWEEP_LEASES_MAX = 1000

/** How long to wait before the next sweep if an expiry could not be written. */
const RETRY_SWEEP_MS = 250

export interface KernelRunnerOptions {
  readonly clock: Clock
  readonly guarantees: Guarantees
  readonly limits?: Partial<Limits> | undefined
  /** The revision to start after. */
  readonly revision?: Revision | undefined
  /** None if nothing needs to outlive the process. */
  readonly durability?: Durability | undefined
}

/**
 * Runs a kernel in real time: gives it the clock, sleeps until the next deadline, answers calls when
 * the changes behind the answer are durable, and notifies watches. The embedded stores are kernel
 * runners, with or without durability.
 */
export class KernelRunner implements LeaseStore {
  readonly guarantees: Guarantees
  readonly kernel: Kernel
  readonly #clock: Clock
  readonly #durability: Durability | undefined
  readonly #outbox: Outbox
  #timer: Timer | undefined
  #timerTime = Infinity
  #sweeping = false
  #closing: Promise<void> | undefined

  constructor(options: KernelRunnerOptions) {
    this.#clock = options.clock
    this.#durability = options.durability
    this.#outbox = new Outbox(() => this.#untilDurable())
    this.kernel = new Kernel({
      limits: options.limits,
      revision: options.revision,
      changeSink: options.durability?.changeSink,
      noticeSink: this.#outbox,
    })
    this.guarantees = {
      ...options.guarantees,
      requestsRemembered: this.kernel.limits.requests,
      eventsKept: this.kernel.limits.events,
    }
  }

  /** Opens the store for calls. Call it once, after the kernel was rebuilt if necessary. */
  start(): void {
    this.#outbox.attach(this.kernel)
    this.#arm()
  }

  grant(request: GrantRequest): Promise<Granted | Busy> {
    if (this.#closing) return reject(CLOSED)
    const obstacle = this.#durability?.obstacle('grow')
    return this.#answer(this.kernel.grant(request, this.#clock.now(), obstacle), obstacle)
  }

  renew(leases: readonly LeaseId[]): Promise<Renewed> {
    if (this.#closing) return reject(CLOSED)
    const answer = this.kernel.renew(leases, this.#clock.now())
    // A renewal depends on nothing that could be lost. The end or break of a lease does.
    if (!('lost' in answer) || answer.lost.length > 0 || answer.capped.some(isBroken)) {
      return this.#answer(answer)
    }
    return Promise.resolve(answer)
  }

  revoke(request: RevokeRequest): Promise<Revoked> {
    if (this.#closing) return reject(CLOSED)
    const obstacle = this.#durability?.obstacle('shrink')
    return this.#answer(this.kernel.revoke(request, this.#clock.now(), obstacle), obstacle)
  }

  claim(request: ClaimRequest): Promise<Claimed | Busy> {
    if (this.#closing) return reject(CLOSED)
    const obstacle = this.#durability?.obstacle('grow')
    return this.#answer(this.kernel.claim(request, this.#clock.now(), obstacle), obstacle)
  }

  release(request: ReleaseRequest): Promise<Changed> {
    if (this.#closing) return reject(CLOSED)
    const obstacle = this.#durability?.obstacle('shrink')
    return this.#answer(this.kernel.release(request, this.#clock.now(), obstacle), obstacle)
  }

  update(request: UpdateRequest): Promise<Changed> {
    if (this.#closing) return reject(CLOSED)
    const obstacle = this.#durability?.obstacle('grow')
    return this.#answer(this.kernel.update(request, this.#clock.now(), obstacle), obstacle)
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    if (this.#closing) return reject(CLOSED)
    return this.#answer(this.kernel.reader.read(query))
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    const complaint = this.#closing ? CLOSED : checkWatch(target, observer, this.kernel.limits)
    if (complaint) throw LeaseholdError.from(complaint)
    if ('lease' in target) return this.#outbox.watchLease(target.lease, observer)
    return this.#outbox.watchPrefix(target.prefix, target.from, observer)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#timer?.cancel()
    try {
      await this.#durability?.close()
    } finally {
      this.#outbox.close(LeaseholdError.from(CLOSED))
    }
  }

  /**
   * Answers when all earlier changes are durable. An obstacle is answered at once: it depends on no
   * change, and what prevents writing may last.
   */
  #answer<A extends object>(answer: A | Refused, obstacle?: Refusal): Promise<A> {
    if (isRefusedAnswer(answer) && answer.refusal === obstacle) return reject(answer.refusal)
    this.#outbox.changed()
    this.#arm()
    const durable = this.#untilDurable()
    if (durable) return durable.then(() => unwrap(answer))
    return isRefusedAnswer(answer) ? reject(answer.refusal) : Promise.resolve(answer)
  }

  #untilDurable(): Promise<void> | undefined {
    return this.#durability?.pending ? this.#durability.durable() : undefined
  }

  /** Sets the timer for an earlier deadline. Renewals do not move it: the sweep checks again. */
  #arm(): void {
    const time = this.kernel.nextDeadline
    if (time >= this.#timerTime || this.#sweeping) return
    this.#timer?.cancel()
    this.#timerTime = time
    this.#timer = this.#clock.timer(time, () => this.#sweepSoon())
  }

  /**
   * Defers the sweep until the input that has already arrived was handled. After a stall, a renewal
   * that arrived in time must be handled before its lease is checked.
   */
  #sweepSoon(): void {
    this.#timerTime = Infinity
    this.#sweeping = true
    this.#clock.defer(() => this.#sweep())
  }

  #sweep(): void {
    if (this.#closing) return
    const now = this.#clock.now()
    if (this.#durability?.obstacle('shrink')) {
      this.#clock.timer(now + RETRY_SWEEP_MS, () => this.#sweepSoon())
      return
    }
    const more = this.kernel.expire(now, SWEEP_LEASES_MAX)
    this.#outbox.changed()
    if (more) {
      this.#clock.defer(() => this.#sweep())
    } else {
      this.#sweeping = false
      this.#arm()
    }
  }
}

const CLOSED: Refusal = { code: 'closed', message: 'the store is closed: open it again' }

function isBroken({ end }: Capped): boolean {
  return end !== undefined
}

function isRefusedAnswer(answer: object): answer is Refused {
  return isRefused(answer as Refused)
}

function unwrap<A extends object>(answer: A | Refused): A {
  if (isRefusedAnswer(answer)) throw LeaseholdError.from(answer.refusal)
  return answer
}

function reject(refusal: Refusal): Promise<never> {
  return Promise.reject(LeaseholdError.from(refusal))
}
