import {
  type Ahead,
  type Busy,
  type Claimed,
  type ClaimRequest,
  type ClaimSpec,
  type End,
  formatDuration,
  type Granted,
  invalid,
  type Key,
  LeaseholdError,
  milliseconds,
  type Revision,
  show,
  type Token,
} from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import type { Acquisition as Report } from '../events/index.ts'
import { type Hold, KeptHold, type KeptLease, type Loss, lostError } from '../leases/index.ts'
import {
  closedError,
  GONE,
  limitOf,
  noAnswer,
  type Outcome,
  revokeLease,
  StoreCall,
  storeError,
  type TimeLimit,
} from '../store-calls/index.ts'
import { Timed } from '../timers/index.ts'
import { Conflict } from './conflict.ts'
import type { LeaseSource } from './lease-source.ts'
import type { HoldOptions, LeaseSources } from './lease-sources.ts'

/**
 * How often one acquisition tries again. Leases that end faster are of no use, and a limit that is
 * exceeded again under the same lease does not depend on the lease.
 */
const RESTARTS_MAX = 3
const NO_DEADLINES = { answerBy: Infinity, waitUntil: Infinity }

export type Result = Hold | Conflict

/** Claims the keys and waits until all of them are held; with `ifFree`, does not wait. */
export function acquire(
  core: ClientCore,
  sources: LeaseSources,
  claims: readonly ClaimSpec[],
  options: HoldOptions,
  ifFree: boolean,
  limit: TimeLimit,
): Promise<Result> {
  try {
    if (core.closed) throw closedError()
    const acquisition = new Acquisition(core, sources.find(options), claims, options, ifFree, limit)
    const { telemetry } = core.settings
    if (telemetry === undefined) return acquisition.start()
    const report = telemetry.acquiring(acquisition.keys)
    return reported(report, acquisition.start())
  } catch (error) {
    return Promise.reject(error)
  }
}

/**
 * One way from asking to holding: gets a lease, claims the keys under it, waits for its turn.
 *
 * It ends exactly once: it holds, it finds the keys busy, or it fails. If it fails while a call is
 * in flight, it stays to handle the answer, so that no claim is left behind.
 */
export class Acquisition extends Timed {
  readonly claims: readonly ClaimSpec[]
  readonly keys: readonly Key[]
  readonly ifFree: boolean
  revision: Revision = 0
  claimToken: Token = 0
  readonly #core: ClientCore
  readonly #source: LeaseSource
  readonly #wait: number
  readonly #limit: TimeLimit
  readonly #signal: AbortSignal | undefined
  /** For listeners of `acquired`. Reading the clock is slow, so only if there is one, or a wait. */
  #begunAt: number | undefined = undefined
  /** Settles the caller's promise, if not the answer to its first call does. */
  #resolve: ((result: Result) => void) | undefined = undefined
  #reject: ((error: LeaseholdError) => void) | undefined = undefined
  #onAbort: (() => void) | undefined = undefined
  /** When the store must have answered, and when the wait ends. Most have no limit in memory. */
  #deadlines: { answerBy: number; readonly waitUntil: number } | undefined = undefined
  #isOver = false
  #keepsAlive = false
  #lease: KeptLease | undefined = undefined
  #conflict: Conflict | undefined = undefined
  #isMyTurn = false
  #restarts = 0
  /** The lease that last had no room for the claims. */
  #fullLease: KeptLease | undefined = undefined

  constructor(
    core: ClientCore,
    source: LeaseSource,
    claims: readonly ClaimSpec[],
    { wait, signal, timeout }: HoldOptions,
    ifFree: boolean,
    limit: TimeLimit,
  ) {
    super()
    const waitMs = wait === undefined ? Infinity : milliseconds(wait, 'wait')
    this.#core = core
    this.#source = source
    this.claims = claims
    this.keys = claims.length === 1 ? [claims[0]!.key] : claims.map((claim) => claim.key)
    this.ifFree = ifFree || waitMs === 0
    this.#wait = ifFree ? Infinity : waitMs
    this.#limit = limitOf(timeout, limit)
    this.#signal = signal
    if (core.events.hasListeners('acquired')) this.#begunAt = core.timers.now()
    if (signal === undefined) return
    checkSignal(signal)
    if (signal.aborted) throw this.#abortedError()
  }

  start(): Promise<Result> {
    const signal = this.#signal
    const first = Math.min(this.#limit.ms, this.ifFree ? Infinity : this.#wait)
    const hasLimit = first < Infinity
    if (!hasLimit && signal === undefined) return this.#source.admit(this) as Promise<Result>
    // It may end before its first call is answered.
    const result = this.later()!
    if (hasLimit) {
      const now = this.#core.timers.now()
      this.#deadlines = { answerBy: now + this.#limit.ms, waitUntil: now + this.#wait }
      this.#core.timeouts.add(this, first, now)
    }
    if (signal !== undefined) {
      this.#onAbort = () => void this.fail(this.#abortedError())
      signal.addEventListener('abort', this.#onAbort, { once: true })
    }
    void this.#source.admit(this)
    return result
  }

  /** A promise for a caller that has to wait; nothing if it has one already. */
  later(): Promise<Result> | undefined {
    if (this.#resolve !== undefined) return undefined
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Claims the keys under a lease that is kept already. */
  claimUnder(lease: KeptLease): Promise<Result> | undefined {
    const call = new ClaimCall(this.#core, this, lease)
    if (this.#resolve === undefined) return call.start()
    call.startAlone()
    return undefined
  }

  /** The store put the claims into the queues of their keys. They may hold already. */
  onClaimed(lease: KeptLease, answer: Claimed | Granted): Outcome<Result> {
    const early = lease.watch.takeEarly(answer.token)
    if (lease.currentState() === 'lost') return this.restart(tooSlow(lease))
    if (this.#isOver) {
      lease.retireIfUnused()
      return void lease.discard(this.keys, answer.token)
    }
    this.#lease = lease
    this.claimToken = answer.token
    this.revision = answer.revision
    const holds = (answer.holds || early?.holds === true) && early?.end === undefined
    if (holds && lease.lastState === 'held') return this.#hold(lease)
    return this.#waitForTurn(lease, answer.ahead[0], holds, early?.end)
  }

  /** The keys are not free, and it must not wait. */
  onBusy(answer: Busy): Outcome<Result> {
    if (this.#isOver) return undefined
    this.#conflict = new Conflict(answer.ahead[0]!)
    return this.#wait === 0 ? this.expire() : this.#end(this.#conflict)
  }

  /** Its lease ended before the claims were made, so another lease will do. */
  restart(error: LeaseholdError): Outcome<Result> {
    if (this.#isOver) return undefined
    if (this.#core.closed) return this.fail(closedError())
    return ++this.#restarts > RESTARTS_MAX ? this.fail(error) : this.#source.admit(this)
  }

  /** The lease has no room for the claims, or they exceed another limit: a new lease will show. */
  onLeaseFull(lease: KeptLease, error: LeaseholdError): Outcome<Result> {
    if (this.#isOver) return undefined
    // Others have filled a lease that was new: each time that happens, some of them are served.
    if (lease !== this.#fullLease) this.#restarts = 0
    this.#fullLease = lease
    if (this.#core.closed || ++this.#restarts > RESTARTS_MAX) return this.fail(error)
    return this.#source.admitElsewhere(this, lease)
  }

  /** It is first in the queue of each of its keys. */
  onTurn(): void {
    this.#isMyTurn = true
    // A lapsed lease may recover. Until then it must not be used, so it is not handed out.
    if (this.#lease!.currentState() === 'held') this.#hold(this.#lease!)
  }

  leaseRecovered(): void {
    if (this.#isMyTurn && !this.#isOver) this.#hold(this.#lease!)
  }

  /** Its lease ended while it waited, or somebody removed its claim by force. */
  lose(loss: Loss): void {
    this.#lease = undefined
    const isClosed = loss.reason === 'closed'
    this.fail(isClosed ? closedError() : lostError(this.keys, this.claimToken, loss))
  }

  /** Ends it with an error, and removes its claim if it waits. */
  fail(error: LeaseholdError): LeaseholdError | undefined {
    if (this.#isOver) return undefined
    const lease = this.#lease
    this.#finish()
    this.#reject?.(error)
    if (lease?.waiting.delete(this.claimToken)) lease.discard(this.keys, this.claimToken)
    return this.#reject === undefined ? error : undefined
  }

  /** The store has not answered in time, or it has waited as long as it may. */
  expire(now?: number): LeaseholdError | undefined {
    const isUnanswered = this.#lease === undefined && this.#conflict === undefined
    const { answerBy, waitUntil } = this.#deadlines ?? NO_DEADLINES
    if (isUnanswered && (now ?? waitUntil) >= answerBy && (this.ifFree || answerBy <= waitUntil)) {
      const then = 'the client removes it in the background'
      const what = `the claim on ${this.keys.map(show).join(', ')}`
      return this.fail(noAnswer(what, this.#limit, { isRead: false, then }, undefined))
    }
    const conflict = this.#conflict
    let who = isUnanswered ? ', and the store has not answered yet' : ''
    if (conflict) {
      who = `, which was held by ${show(conflict.holder)} (token ${conflict.token}) with ${conflict.ahead - 1} more in the queue`
    }
    return this.fail(
      new LeaseholdError(
        'timeout',
        `waited ${formatDuration(this.#wait)} for ${this.keys.map(show).join(', ')}${who}: wait longer, or try later`,
      ),
    )
  }

  /** The client closes. */
  stop(error: LeaseholdError): void {
    this.fail(error)
  }

  get hasChosenLimit(): boolean {
    return this.#limit.chosenBy !== 'default'
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Keeps the process running until it is over. */
  keepAlive(): void {
    if (this.#keepsAlive || this.#isOver) return
    this.#keepsAlive = true
    this.#core.keepAlive.enter()
  }

  #waitForTurn(
    lease: KeptLease,
    first: Ahead | undefined,
    holds: boolean,
    end: End | undefined,
  ): Promise<Result> | undefined {
    const result = this.later()
    this.#begunAt ??= this.#core.timers.now()
    this.keepAlive()
    // The store has answered: only the wait is limited now.
    const deadlines = this.#deadlines
    if (deadlines !== undefined && deadlines.answerBy < deadlines.waitUntil) {
      deadlines.answerBy = Infinity
      this.#core.timeouts.remove(this)
      if (this.#wait < Infinity) {
        const now = this.#core.timers.now()
        this.#core.timeouts.add(this, Math.max(0, deadlines.waitUntil - now), now)
      }
    }
    if (first !== undefined) this.#conflict = new Conflict(first)
    lease.addWaiter(this)
    if (end !== undefined) lease.claimRemoved(this.claimToken, undefined, end)
    else if (holds) this.onTurn()
    return result
  }

  #hold(lease: KeptLease): Hold | undefined {
    const core = this.#core
    const { maxHold } = lease.timing
    if (maxHold < Infinity && !this.ifFree) {
      // The time in the queue must not count, so the lease is limited only now: here at once, at
      // the store by a break, which starts later and therefore ends later.
      lease.cap(core.timers.now(), maxHold, undefined)
      revokeLease(core, lease.id, 'maxHold', maxHold)
    }
    const hold = new KeptHold(core, lease, this.keys, this.claimToken, this.revision)
    lease.addHold(hold, this.#begunAt)
    return this.#end(hold)
  }

  /** Ends it with a result. */
  #end<R extends Result>(result: R): R | undefined {
    this.#finish()
    if (this.#resolve === undefined) return result
    this.#resolve(result)
    return undefined
  }

  #finish(): void {
    this.#isOver = true
    this.#core.timeouts.remove(this)
    if (this.#onAbort !== undefined) this.#signal!.removeEventListener('abort', this.#onAbort)
    if (this.#keepsAlive) this.#core.keepAlive.leave()
  }

  #abortedError(): LeaseholdError {
    return new LeaseholdError(
      'aborted',
      `the wait for ${this.keys.map(show).join(', ')} was aborted by its signal`,
      { cause: this.#signal!.reason },
    )
  }
}

class ClaimCall extends StoreCall<Claimed | Busy, Result> {
  readonly #acquisition: Acquisition
  readonly #lease: KeptLease
  readonly #request: ClaimRequest
  readonly #epoch: number

  constructor(core: ClientCore, acquisition: Acquisition, lease: KeptLease) {
    super(core)
    const { claims, ifFree } = acquisition
    this.#acquisition = acquisition
    this.#lease = lease
    this.#request = { lease: lease.id, claims, ifFree, request: core.requestId() }
    this.#epoch = lease.beginClaimCall()
  }

  get repeatable(): boolean {
    return this.#request.request !== undefined
  }

  override get hasChosenLimit(): boolean {
    return this.#acquisition.hasChosenLimit
  }

  get pointless(): boolean {
    return !this.#lease.alive
  }

  send(): Promise<Claimed | Busy> {
    return this.core.store.claim(this.#request)
  }

  answered(answer: Claimed | Busy): Outcome<Result> {
    const outcome =
      answer.outcome === 'busy'
        ? this.#acquisition.onBusy(answer)
        : this.#acquisition.onClaimed(this.#lease, answer)
    this.#lease.endClaimCall(this.#epoch)
    return outcome
  }

  failed(error: LeaseholdError): Outcome<Result> {
    const lease = this.#lease
    if (GONE.has(error.code)) lease.endedByStore(endIn(error))
    const outcome = this.#afterFailure(error)
    lease.endClaimCall(this.#epoch)
    // It may have been carried out. The watch then lists all claims, and removes unknown ones.
    if (error.outcome === 'unknown') lease.watch.open()
    return outcome
  }

  overdue(error: LeaseholdError): Outcome<Result> {
    return this.#acquisition.fail(error)
  }

  #afterFailure(error: LeaseholdError): Outcome<Result> {
    if (!this.#lease.alive) return this.#acquisition.restart(error)
    if (error.code !== 'limit-exceeded') return this.#acquisition.fail(error)
    return this.#acquisition.onLeaseFull(this.#lease, error)
  }
}

/** How a lease ended by force, if the refusal says so. */
function endIn({ reason, by, why }: LeaseholdError): End | undefined {
  return reason === 'revoked' || reason === 'broken' ? { reason, by, why } : undefined
}

async function reported(report: (how: Report) => void, result: Promise<Result>): Promise<Result> {
  try {
    const held = await result
    if (held instanceof Conflict) report({ outcome: 'busy' })
    else report({ outcome: 'held', lease: held.lease, token: held.claimToken })
    return held
  } catch (error) {
    report({ outcome: 'failed', code: storeError(error).code, error })
    throw error
  }
}

function checkSignal(signal: AbortSignal): void {
  if (typeof signal === 'object' && signal !== null && 'aborted' in signal) return
  throw invalid(`signal is ${show(signal)}: it must be an AbortSignal`)
}

function tooSlow({ timing }: KeptLease): LeaseholdError {
  return new LeaseholdError(
    'lost',
    `the store took longer to answer than a lease of ${formatDuration(timing.ttl)} lives: use a longer ttl`,
    { reason: 'expired' },
  )
}
