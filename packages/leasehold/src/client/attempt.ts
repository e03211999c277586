import {
  type Ahead,
  type Busy,
  type Claimed,
  type ClaimSpec,
  type End,
  formatDuration,
  type Granted,
  type Key,
  LeaseholdError,
  type Revision,
  show,
  type Time,
  type Token,
} from '../port/index.ts'
import type { ClientCore } from './core.ts'
import { revokeLease } from './errands.ts'
import { type Hold, KeptHold } from './hold.ts'
import type { Keeper } from './keeper.ts'
import { closedError, type Loss, lostError } from './loss.ts'
import type { Timed } from './timeouts.ts'

/** Why something could not be had at once: who is before us. As it was when the store answered. */
export class Conflict {
  readonly key: Key
  /** Who holds it, with which token and which value. */
  readonly holder: string
  readonly token: Token
  readonly value: string | undefined
  /** Since when, and until when unless it is renewed: on the store's clock, to show to people. */
  readonly since: Time
  readonly until: Time
  /** How many hold it or wait for it. */
  readonly ahead: number

  constructor({ key, count, first }: Ahead) {
    this.key = key
    this.holder = first.holder
    this.token = first.token
    this.value = first.value
    this.since = first.heldSince ?? first.claimedAt
    this.until = first.until
    this.ahead = count
  }
}

/** Where an attempt gets its lease from. */
export interface LeaseSource {
  /** A lease that can be claimed under now, as far as is known. */
  readonly ready: Keeper | undefined
  /** Sees to it that the attempt gets a place, or is told why not. */
  admit(attempt: Attempt): void
  /** The same, where this lease took no further claim. */
  admitElsewhere(attempt: Attempt, full: Keeper): void
}

/** What somebody wants to hold, and how long they wait for it. */
export interface Aim {
  readonly source: LeaseSource
  readonly claims: readonly ClaimSpec[]
  readonly ifFree: boolean
  readonly wait: number
  readonly signal: AbortSignal | undefined
}

/**
 * How often one attempt tries again: leases that die faster are no use, and a limit that it passes
 * again under the same lease is not a matter of leases.
 */
const RESTARTS_MAX = 3

/**
 * One way from asking to holding: gets a lease, takes a place on the keys, waits in line.
 *
 * It ends exactly once: it holds, it finds the keys busy, or it fails. Where it fails while a call
 * is under way it stays to deal with the answer, so that no claim is left behind.
 */
export class Attempt implements Timed {
  timeout: Timed['timeout'] = undefined
  readonly claims: readonly ClaimSpec[]
  readonly keys: readonly Key[]
  readonly ifFree: boolean
  revision: Revision = 0
  claimToken: Token = 0
  readonly #core: ClientCore
  readonly #source: LeaseSource
  readonly #resolve: (result: Hold | Conflict) => void
  readonly #reject: (error: LeaseholdError) => void
  readonly #wait: number
  readonly #signal: AbortSignal | undefined
  #onAbort: (() => void) | undefined = undefined
  #over = false
  #staying = false
  #keeper: Keeper | undefined = undefined
  #conflict: Conflict | undefined = undefined
  #myTurn = false
  #restarts = 0
  /** The lease that last took no further claim. */
  #full: Keeper | undefined = undefined
  readonly #begunAt: number

  constructor(
    core: ClientCore,
    aim: Aim,
    resolve: (result: Hold | Conflict) => void,
    reject: (error: LeaseholdError) => void,
  ) {
    this.#core = core
    this.#begunAt = core.agenda.now()
    this.#source = aim.source
    this.claims = aim.claims
    this.keys = keysOf(aim.claims)
    this.ifFree = aim.ifFree
    this.#wait = aim.wait
    this.#signal = aim.signal
    this.#resolve = resolve
    this.#reject = reject
  }

  /** Begins to count the time and to listen to the signal. */
  begin(): this {
    const signal = this.#signal
    if (this.#wait < Infinity && !this.ifFree) this.#core.timeouts.add(this, this.#wait)
    if (signal !== undefined) {
      this.#onAbort = () => this.fail(abortedError(this.keys, signal))
      if (signal.aborted) this.#onAbort()
      else signal.addEventListener('abort', this.#onAbort, { once: true })
    }
    return this
  }

  get over(): boolean {
    return this.#over
  }

  /** Keeps the process running until the attempt is over. */
  stay(): void {
    if (this.#staying || this.#over) return
    this.#staying = true
    this.#core.keepAlive.enter()
  }

  /** The store gave it a place. */
  placed(keeper: Keeper, answer: Claimed | Granted): void {
    const early = keeper.channel.takeEarly(answer.token)
    if (keeper.look() === 'lost') this.restart(tooSlow(keeper))
    else if (this.#over) {
      keeper.emptied()
      keeper.discard(this.keys, answer.token)
    } else {
      this.#keeper = keeper
      this.claimToken = answer.token
      this.revision = answer.revision
      const holds = (answer.holds || early?.holds === true) && early?.end === undefined
      if (holds && keeper.lastState === 'held') this.#hold()
      else this.#standInLine(keeper, answer.ahead[0], holds, early?.end)
    }
  }

  /** The keys are not free, and it did not want to wait. */
  busy(answer: Busy): void {
    if (this.#over) return
    this.#conflict = new Conflict(answer.ahead[0]!)
    if (this.#wait === 0) this.expire()
    else {
      this.#finish()
      this.#resolve(this.#conflict)
    }
  }

  /** Its lease ended before it had a place, so another lease will do. */
  restart(error: LeaseholdError): void {
    if (this.#over) return
    if (this.#core.closed) this.fail(closedError())
    else if (++this.#restarts > RESTARTS_MAX) this.fail(error)
    else this.#source.admit(this)
  }

  /** The lease has as many claims as it may, or the call passed another limit: a new lease tells. */
  leaseFull(keeper: Keeper, error: LeaseholdError): void {
    if (this.#over) return
    // Others have filled a lease that was new: each time that happens, some of them are served.
    if (keeper !== this.#full) this.#restarts = 0
    this.#full = keeper
    if (this.#core.closed || ++this.#restarts > RESTARTS_MAX) this.fail(error)
    else this.#source.admitElsewhere(this, keeper)
  }

  /** It is first in line on all its keys. */
  turn(): void {
    if (this.#over) return
    this.#myTurn = true
    // A lapsed lease may recover; nobody is given something that must not be used.
    if (this.#keeper!.look() === 'held') this.#hold()
  }

  recovered(): void {
    if (this.#myTurn && !this.#over) this.#hold()
  }

  /** Its lease ended while it waited in line, or its claim was taken by force. */
  lose(loss: Loss): void {
    this.#keeper = undefined
    const closed = loss.reason === 'closed'
    this.fail(closed ? closedError() : lostError(this.keys, this.claimToken, loss))
  }

  fail(error: LeaseholdError): void {
    if (this.#over) return
    const keeper = this.#keeper
    this.#finish()
    this.#reject(error)
    if (keeper?.waiting.delete(this.claimToken)) keeper.discard(this.keys, this.claimToken)
  }

  /** The wait was as long as it may be. */
  expire(): void {
    const conflict = this.#conflict
    const who = conflict
      ? `, which was held by ${show(conflict.holder)} (token ${conflict.token}) with ${conflict.ahead - 1} more in line`
      : ''
    this.fail(
      new LeaseholdError(
        'timeout',
        `waited ${formatDuration(this.#wait)} for ${this.keys.map(show).join(', ')}${who}: wait longer, or try later`,
      ),
    )
  }

  stop(error: LeaseholdError): void {
    this.fail(error)
  }

  #standInLine(keeper: Keeper, first: Ahead | undefined, holds: boolean, end?: End): void {
    this.stay()
    if (first !== undefined) this.#conflict = new Conflict(first)
    keeper.standInLine(this.claimToken, this)
    if (end !== undefined) keeper.taken(this.claimToken, undefined, end)
    else if (holds) this.turn()
  }

  #hold(): void {
    const core = this.#core
    const keeper = this.#keeper!
    const { maxHold } = keeper.timing
    if (maxHold < Infinity && !this.ifFree) {
      // The time in line must not count, so the lease is bounded only now: here at once, at the
      // store by a break, which starts later and therefore ends later.
      keeper.cap(core.agenda.now(), maxHold, undefined)
      revokeLease(core, keeper.lease, 'maxHold', maxHold)
    }
    const hold = new KeptHold(core, keeper, this.keys, this.claimToken, this.revision)
    if (keeper.waiting.delete(this.claimToken)) keeper.steppedForward()
    keeper.holdIs(this.claimToken, hold, core.agenda.now() - this.#begunAt)
    this.#finish()
    this.#resolve(hold)
  }

  #finish(): void {
    this.#over = true
    this.#core.timeouts.remove(this)
    if (this.#onAbort !== undefined) this.#signal!.removeEventListener('abort', this.#onAbort)
    if (this.#staying) this.#core.keepAlive.leave()
  }
}

export function keysOf(claims: readonly ClaimSpec[]): readonly Key[] {
  return claims.length === 1 ? [claims[0]!.key] : claims.map((claim) => claim.key)
}

export function abortedError(keys: readonly Key[], signal: AbortSignal): LeaseholdError {
  return new LeaseholdError(
    'aborted',
    `the wait for ${keys.map(show).join(', ')} was aborted by its signal`,
    { cause: signal.reason },
  )
}

function tooSlow(keeper: Keeper): LeaseholdError {
  return new LeaseholdError(
    'lost',
    `the store took longer to answer than a lease of ${formatDuration(keeper.timing.ttl)} lives: use a longer ttl`,
    { reason: 'expired' },
  )
}
