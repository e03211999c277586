import {
  type Capped,
  type End,
  formatDuration,
  type Key,
  LeaseholdError,
  type LeaseId,
  type Token,
} from '../port/index.ts'
import type { Task } from './agenda.ts'
import type { Attempt } from './attempt.ts'
import { carryOut } from './call.ts'
import { Channel } from './channel.ts'
import type { ClientCore } from './core.ts'
import { ReleaseErrand, revokeLease, revokeLeaseAs } from './errands.ts'
import type { KeptHold } from './hold.ts'
import { type Loss, lossBy, lossNews, lostError } from './loss.ts'
import { RenewalWait } from './renewal-wait.ts'
import type { Timing } from './timing.ts'

/**
 * - `held`: nobody else can hold, and the holder may act.
 * - `lapsed`: nobody else can hold yet, but the holder must not act; a renewal may still save it.
 * - `lost`: somebody else may hold. Final.
 */
export type LeaseState = 'held' | 'lapsed' | 'lost'

/**
 * Renewals fall on steps, so that leases are renewed together: at most this part of their interval,
 * and a power of two, so that intervals that are nearly the same have the same steps.
 */
const STEP_PART = 1 / 8

/** Answers take their time, so that they tell one deadline a little differently. */
const SAME_BREAK_MS = 500

/**
 * Keeps one lease, and knows at every moment whether what is under it can still be believed in.
 *
 * Its deadlines count from when a grant or renewal was *sent*, and move only when that very send
 * was answered. When the last deadline has passed without an answer the lease is lost for good, here
 * and now, whatever the store may say later: work that was stopped must not be told to go on.
 */
export class Keeper implements Task {
  agendaAt = Infinity
  readonly lease: LeaseId
  readonly timing: Timing
  /** What is held under the lease, and what waits. Both are emptied when it is lost. */
  readonly holds = new Map<Token, KeptHold>()
  readonly waiting = new Map<Token, Attempt>()
  readonly channel: Channel
  readonly #core: ClientCore
  /** A lease that is not shared ends with the one claim that it was made for. */
  readonly #shared: boolean
  #state: LeaseState = 'held'
  #heldUntil: number
  #keptUntil: number
  #capAt = Infinity
  #capEnd: End | undefined = undefined
  /** The store has said that the cap ends it, and not its ttl. */
  #endsByCap = false
  #renewAt: number
  /** The stamps of the last send, and of the last that was answered. */
  #sentAt: number
  #answeredAt: number
  #lastError: LeaseholdError | undefined = undefined
  #used = true
  /** Claims under way, those begun before and since the last `markCalls`. */
  #epoch = 0
  #callsBefore = 0
  #callsSince = 0
  #renewalWaits: RenewalWait[] = []

  /** `stamp` is when the grant was first sent. */
  constructor(core: ClientCore, lease: LeaseId, timing: Timing, stamp: number, shared: boolean) {
    this.#core = core
    this.lease = lease
    this.timing = timing
    this.#shared = shared
    this.#heldUntil = stamp + timing.believed
    this.#keptUntil = stamp + timing.kept
    this.#sentAt = stamp
    this.#answeredAt = stamp
    this.#renewAt = this.#planned(stamp)
    this.channel = new Channel(core, this)
    core.keepers.add(this)
    core.agenda.schedule(this, this.#next())
    core.events.emit('leased', { lease, ttl: timing.ttl })
    this.channel.open()
  }

  get alive(): boolean {
    return this.#state !== 'lost'
  }

  /** The state as it was when somebody last looked at the clock. */
  get lastState(): LeaseState {
    return this.#state
  }

  /** The state now, by the clock: right even where a stall has kept every timer from running. */
  look(): LeaseState {
    if (this.#state !== 'lost') this.#check(this.#core.agenda.now())
    return this.#state
  }

  /** For how much longer it is held without a renewal, if it is held at all. */
  remaining(): number {
    return Math.max(0, this.#heldUntil - this.#core.agenda.now())
  }

  // Time.

  run(now: number): number {
    this.#check(now)
    if (this.#state === 'lost') return Infinity
    if (this.#renewAt <= now) {
      if (this.#shared && this.#empty()) {
        // Kept for one more round, since the next lock on it then needs no new lease.
        if (!this.#used) {
          this.retire()
          return Infinity
        }
        this.#used = false
      }
      this.#renewAt = Infinity
      if (!this.#endsByCap) this.#core.heartbeat.add(this)
    }
    return this.#next()
  }

  /** A renewal leaves now. The next is planned already, in case that this one is not answered. */
  sent(stamp: number): void {
    this.#sentAt = stamp
    const { every } = this.timing
    const rest = Math.max((this.#keptUntil - stamp) / 6, every / 50, 1)
    const again = stamp + rest * (0.75 + 0.25 * this.#core.random.next())
    this.#renewAt = again < this.#keptUntil ? again : Infinity
    this.#core.agenda.schedule(this, this.#next())
  }

  /** The renewal that was sent at `stamp` was carried out. */
  renewed(stamp: number, capped: Capped | undefined): void {
    // An answer after the loss is too late. But where nobody has looked at the clock since the last
    // deadline, as after a stall, nobody was told of a loss, and the answer proves that there is none.
    if (this.#state === 'lost') return
    if (capped !== undefined) this.#cap(stamp, capped.remaining, capped.end)
    if (stamp > this.#answeredAt) {
      this.#answeredAt = stamp
      this.#lastError = undefined
      this.#endsByCap = capped !== undefined
      this.#heldUntil = Math.min(stamp + this.timing.believed, this.#capAt)
      this.#keptUntil = Math.min(stamp + this.timing.kept, this.#capAt)
      this.#renewAt = this.#planned(stamp)
    }
    const now = this.#core.agenda.now()
    this.#check(now)
    if (!this.alive) return
    const { lease } = this
    this.#core.events.emit('renewed', { lease, ttl: this.timing.ttl })
    if (this.#state === 'lapsed' && now < this.#heldUntil) this.#recover()
    const waits = this.#renewalWaits
    this.#renewalWaits = waits.filter((wait) => !wait.renewed(stamp))
    this.#core.agenda.schedule(this, this.#next())
  }

  notRenewed(error: LeaseholdError): void {
    this.#lastError = error
  }

  /** The lease's life was bounded `remaining` milliseconds after something that we did at `stamp`. */
  cap(stamp: number, remaining: number, end: End | undefined): void {
    this.#cap(stamp, remaining, end)
    this.#core.agenda.schedule(this, this.#next())
  }

  /** A notice of a cap is as old as it is: a renewal tells what is left, counted from its sending. */
  capTold(remaining: number, end: End | undefined): void {
    this.cap(this.#core.agenda.now(), remaining, end)
    if (this.timing.renewal === 'automatic') this.#core.heartbeat.add(this)
  }

  /** It is in use. Renews it where that is its strategy, but not more often than makes sense. */
  touch(): void {
    if (this.timing.renewal !== 'activity' || this.look() === 'lost') return
    const at = Math.max(this.#core.agenda.now(), this.#sentAt + this.timing.every)
    if (at >= this.#renewAt) return
    this.#renewAt = at
    this.#core.agenda.schedule(this, at)
  }

  /** Fulfilled when a renewal that is sent from now on was carried out. */
  renew(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#renewalWaits.push(new RenewalWait(this.#core, resolve, reject))
      this.#core.heartbeat.add(this)
    })
  }

  // Claims.

  holdIs(token: Token, hold: KeptHold, waited = 0): void {
    this.#used = true
    this.holds.set(token, hold)
    const { events } = this.#core
    if (!events.heard('acquired')) return
    events.emit('acquired', { lease: this.lease, keys: hold.keys, token, waited })
  }

  /** A claim is on its way. Its end must be told with the number that this answers with. */
  beginCall(): number {
    this.#used = true
    this.#callsSince++
    return this.#epoch
  }

  endCall(epoch: number): void {
    if (epoch === this.#epoch) this.#callsSince--
    else if (--this.#callsBefore === 0) this.channel.callsEnded(this.#epoch)
  }

  get epoch(): number {
    return this.#epoch
  }

  get callsUnderWay(): boolean {
    return this.#callsSince + this.#callsBefore > 0
  }

  /** Has the channel told when the claims that are under way now have all ended. */
  markCalls(): void {
    if (this.#callsBefore > 0) return
    this.#epoch++
    this.#callsBefore = this.#callsSince
    this.#callsSince = 0
    if (this.#callsBefore === 0) this.channel.callsEnded(this.#epoch)
  }

  /** Removes a claim at the store that nobody here wants, for as long as it takes. */
  discard(keys: readonly Key[], token: Token): void {
    if (this.alive) carryOut(this.#core, new ReleaseErrand(this.#core, this, keys, token))
  }

  /** An attempt waits in line. Until it holds its lease is kept, whatever its strategy. */
  standInLine(token: Token, attempt: Attempt): void {
    this.#used = true
    this.waiting.set(token, attempt)
    if (this.#renewAt < Infinity) return
    this.#renewAt = this.#planned(this.#sentAt)
    this.#core.agenda.schedule(this, this.#next())
  }

  /** It came to hold after it had waited: its time counts from now on. */
  steppedForward(): void {
    if (this.timing.renewal !== 'automatic') this.#core.heartbeat.add(this)
  }

  /** One claim, which is held or waits, was taken by force; the lease lives on. */
  taken(token: Token, key: Key | undefined, end: End | undefined): void {
    const entry = (this.holds.get(token) ?? this.waiting.get(token))!
    this.holds.delete(token)
    this.waiting.delete(token)
    const loss = lossBy(end ?? { reason: 'revoked' }, 'it')
    for (const other of entry.keys) if (other !== key) this.discard([other], token)
    entry.lose(loss)
    this.#tellLoss([entry], loss)
    this.emptied()
  }

  /** Something under the lease is gone; ends a lease that was made for it alone. */
  emptied(): void {
    if (!this.#shared && this.alive && this.#empty()) this.retire()
  }

  // The end.

  /** The store told that the lease is no more. */
  told(end: End | undefined): void {
    if (this.alive) this.#lose(lossBy(end, 'its lease'))
  }

  /** Gives up everything under the lease; what happens at the store is the caller's concern. */
  abandon(loss: Loss): void {
    if (this.alive) this.#lose(loss)
  }

  /** Ends a lease that has nothing under it. */
  retire(): void {
    this.#stop()
    this.#endRenewals(new LeaseholdError('claim-not-found', 'it was released meanwhile'))
    revokeLease(this.#core, this.lease, 'unused')
  }

  #check(now: number): void {
    if (this.#state === 'lost') return
    if (now >= this.#keptUntil) this.#conclude()
    else if (now >= this.#heldUntil && this.#state === 'held') {
      this.#state = 'lapsed'
      this.#core.events.emit('lapsed', { lease: this.lease, ttl: this.timing.ttl })
    }
  }

  #recover(): void {
    this.#state = 'held'
    this.#core.events.emit('recovered', { lease: this.lease, ttl: this.timing.ttl })
    for (const attempt of [...this.waiting.values()]) attempt.recovered()
  }

  /** Nothing was heard until the last deadline: it is lost, before anyone else can hold. */
  #conclude(): void {
    const loss = this.#conclusion()
    this.#lose(loss)
    // A renewal may have arrived after all, and then the key would stay blocked for a whole ttl.
    if (loss.reason !== 'broken') revokeLease(this.#core, this.lease, 'given up by its holder')
    // The same break, only sooner: the key is free, and its history tells who broke it and why.
    else revokeLeaseAs(this.#core, this.lease, loss, this.#core.store.guarantees.ttl.min)
  }

  #conclusion(): Loss {
    const { ttl, grace } = this.timing
    if (this.#keptUntil >= this.#capAt) {
      if (this.#capEnd !== undefined) return lossBy(this.#capEnd, 'its lease')
      return { reason: 'expired', detail: 'it was held for as long as it may be' }
    }
    const lived = `ttl ${formatDuration(ttl)}${grace > 0 ? ` and grace ${formatDuration(grace)}` : ''}`
    if (this.#sentAt <= this.#answeredAt) {
      return { reason: 'expired', detail: `its ${lived} ran out without a renewal` }
    }
    const detail = `the store did not answer a renewal within ${lived}`
    return { reason: 'unreachable', detail, cause: this.#lastError }
  }

  #lose(loss: Loss): void {
    const entries = [...this.holds.values(), ...this.waiting.values()]
    this.#stop()
    for (const entry of entries) entry.lose(loss)
    this.#endRenewals(lostError([this.lease], 0, loss))
    this.#tellLoss(entries, loss)
  }

  #endRenewals(error: LeaseholdError): void {
    for (const wait of this.#renewalWaits) wait.lost(error)
    this.#renewalWaits = []
  }

  #stop(): void {
    this.#state = 'lost'
    this.#core.agenda.drop(this)
    this.#core.keepers.delete(this)
    this.channel.close()
    this.holds.clear()
    this.waiting.clear()
  }

  #tellLoss(entries: readonly (KeptHold | Attempt)[], loss: Loss): void {
    if (!this.#core.events.heard('lost')) return
    this.#core.events.emit('lost', lossNews(this.lease, entries, loss))
  }

  #cap(stamp: number, remaining: number, end: End | undefined): void {
    const at = stamp + remaining * this.timing.rate - this.timing.margin
    if (at >= this.#capAt) return
    const isNews = this.#capEnd === undefined || this.#capAt - at > SAME_BREAK_MS
    this.#capAt = at
    this.#capEnd = end
    this.#heldUntil = Math.min(this.#heldUntil, at)
    this.#keptUntil = Math.min(this.#keptUntil, at)
    if (end === undefined || !isNews) return
    const { by, why } = end
    const left = Math.max(0, at - this.#core.agenda.now())
    this.#core.events.emit('broken', { lease: this.lease, remaining: left, by, why })
  }

  /** When to renew after a send at `stamp`: earlier by chance, and at a step shared with others. */
  #planned(stamp: number): number {
    const { ttl, renewal } = this.timing
    const automatic = renewal === 'automatic'
    if (ttl === Infinity || !(automatic || this.waiting.size > 0)) return Infinity
    const every = automatic ? this.timing.every : ttl / 2
    const { settings, random, phase } = this.#core
    const at = stamp + every * (1 - settings.jitter * random.next())
    const step = 2 ** Math.floor(Math.log2(every * STEP_PART))
    return at - ((at + phase * step) % step)
  }

  #next(): number {
    return Math.min(this.#renewAt, this.#state === 'held' ? this.#heldUntil : this.#keptUntil)
  }

  #empty(): boolean {
    return this.holds.size === 0 && this.waiting.size === 0 && !this.callsUnderWay
  }
}
