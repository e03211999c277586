import {
  type Capped,
  type End,
  formatDuration,
  type Key,
  LeaseholdError,
  type LeaseId,
  type Token,
} from '../../port/index.ts'
import type { Acquisition } from '../acquire/index.ts'
import type { ClientCore } from '../core.ts'
import { ReleaseCall, revokeLease, type TimeLimit } from '../store-calls/index.ts'
import type { TimerTask } from '../timers/index.ts'
import type { KeptHold } from './hold.ts'
import { LeaseWatch } from './lease-watch.ts'
import { type Loss, lossBy, lossEvent, lostError } from './loss.ts'
import { RenewalWait } from './renewal-wait.ts'
import type { Timing } from './timings.ts'
import { TokenTable } from './token-table.ts'

/**
 * - `held`: nobody else can hold, and the holder may act.
 * - `lapsed`: nobody else can hold yet, but the holder must not act. A renewal may still save it.
 * - `lost`: somebody else may hold. Final.
 */
export type LeaseState = 'held' | 'lapsed' | 'lost'

/**
 * Renewals fall on steps, so that leases are renewed together. A step is at most this part of the
 * interval, and a power of two, so that similar intervals have the same steps.
 */
const STEP_PART = 1 / 8

/** Two answers report the same deadline with a small difference, because they take time to arrive. */
const SAME_BREAK_MS = 500

/**
 * Keeps one lease alive, and knows at every moment whether its holder may still rely on it.
 *
 * Its deadlines count from when a grant or renewal was *sent*, and move only when that same send
 * was answered. If the last deadline passes without an answer, the lease is lost for good, here and
 * now, whatever the store says later: work that was stopped must not be resumed.
 */
export class KeptLease implements TimerTask {
  queuedAt = Infinity
  readonly id: LeaseId
  readonly timing: Timing
  /** What is held under the lease, and what waits. Both are emptied when the lease is lost. */
  readonly holds = new TokenTable<KeptHold>()
  readonly waiting = new TokenTable<Acquisition>()
  readonly watch: LeaseWatch
  /** Why it was lost. */
  loss: Loss | undefined = undefined
  readonly #core: ClientCore
  /** A lease that is not shared ends with the one claim that it was granted for. */
  readonly #isShared: boolean
  #state: LeaseState = 'held'
  #heldUntil: number
  #keptUntil: number
  #capAt = Infinity
  #capEnd: End | undefined = undefined
  /** The store has said that the cap ends it, and not its ttl. */
  #endsByCap = false
  #renewAt: number
  /** When the last renewal was sent, and when the last one that was answered was sent. */
  #sentAt: number
  #answeredAt: number
  #lastError: LeaseholdError | undefined = undefined
  #wasUsed = true
  /** Claim calls in flight: those that began before and since the last `markClaimCalls`. */
  #epoch = 0
  #callsBefore = 0
  #callsSince = 0
  #renewalWaits: RenewalWait[] = []

  /** `sentAt` is when the grant was first sent. */
  constructor(core: ClientCore, id: LeaseId, timing: Timing, sentAt: number, isShared: boolean) {
    this.#core = core
    this.id = id
    this.timing = timing
    this.#isShared = isShared
    this.#heldUntil = sentAt + timing.believed
    this.#keptUntil = sentAt + timing.kept
    this.#sentAt = sentAt
    this.#answeredAt = sentAt
    this.#renewAt = this.#planRenewal(sentAt)
    this.watch = new LeaseWatch(core, this)
    core.leases.add(this)
    core.timers.schedule(this, this.#nextTime())
    core.events.emit('leased', { lease: id, ttl: timing.ttl })
    this.watch.open()
  }

  get alive(): boolean {
    return this.#state !== 'lost'
  }

  /** The state when somebody last checked the clock. */
  get lastState(): LeaseState {
    return this.#state
  }

  /** The state now, by the clock: right even if a stall has kept every timer from running. */
  currentState(): LeaseState {
    this.#check(this.#core.timers.now())
    return this.#state
  }

  /** How many milliseconds it is still held without a renewal, if it is held at all. */
  remaining(): number {
    return Math.max(0, this.#heldUntil - this.#core.timers.now())
  }

  // Time.

  run(now: number): number {
    this.#check(now)
    if (this.#state === 'lost') return Infinity
    if (this.#renewAt <= now) {
      if (this.#isShared && this.#isUnused()) {
        // Kept for one more round: the next lock on it then needs no new lease.
        if (!this.#wasUsed) {
          this.retire()
          return Infinity
        }
        this.#wasUsed = false
      }
      this.#renewAt = Infinity
      if (!this.#endsByCap) this.#core.heartbeat.add(this)
    }
    return this.#nextTime()
  }

  /** A renewal leaves now. The next one is planned already, in case this one is not answered. */
  renewalSent(sentAt: number): void {
    this.#sentAt = sentAt
    const { every } = this.timing
    const wait = Math.max((this.#keptUntil - sentAt) / 6, every / 50, 1)
    this.#renewAt = sentAt + wait * (0.75 + 0.25 * this.#core.random.next())
    this.#core.timers.schedule(this, this.#nextTime())
  }

  /** The store carried out the renewal that was sent at `sentAt`. */
  renewed(sentAt: number, capped: Capped | undefined): void {
    // An answer after the loss is too late. But if nobody has checked the clock since the last
    // deadline, as after a stall, no loss was reported, and the answer proves there is none.
    if (this.#state === 'lost') return
    if (capped !== undefined) this.#cap(sentAt, capped.remaining, capped.end)
    if (sentAt >= this.#answeredAt) {
      this.#answeredAt = sentAt
      this.#lastError = undefined
      this.#endsByCap = capped !== undefined
      this.#heldUntil = Math.min(sentAt + this.timing.believed, this.#capAt)
      this.#keptUntil = Math.min(sentAt + this.timing.kept, this.#capAt)
      this.#renewAt = this.#planRenewal(sentAt)
    }
    const now = this.#core.timers.now()
    this.#check(now)
    if (!this.alive) return
    this.#core.events.emit('renewed', { lease: this.id, ttl: this.timing.ttl })
    if (this.#state === 'lapsed' && now < this.#heldUntil) this.#recover()
    const waits = this.#renewalWaits
    this.#renewalWaits = waits.filter((wait) => !wait.renewed(sentAt))
    this.#core.timers.schedule(this, this.#nextTime())
  }

  notRenewed(error: LeaseholdError): void {
    this.#lastError = error
  }

  /** The lease's life was limited to `remaining` milliseconds after `since`. */
  cap(since: number, remaining: number, end: End | undefined): void {
    this.#cap(since, remaining, end)
    this.#core.timers.schedule(this, this.#nextTime())
  }

  /**
   * The store sent a notice of a cap, which took time to arrive. A renewal learns what is left,
   * counted from its sending.
   */
  cappedByNotice(remaining: number, end: End | undefined): void {
    this.cap(this.#core.timers.now(), remaining, end)
    if (this.timing.renewal === 'automatic') this.#core.heartbeat.add(this)
  }

  /** The holder uses it. Renews it if that is its strategy, but not more often than makes sense. */
  touch(): void {
    if (this.timing.renewal !== 'activity' || this.currentState() === 'lost') return
    const at = Math.max(this.#core.timers.now(), this.#sentAt + this.timing.every)
    if (at >= this.#renewAt) return
    this.#renewAt = at
    this.#core.timers.schedule(this, at)
  }

  /** Fulfilled when the store has carried out a renewal that is sent from now on. */
  renew(limit: TimeLimit): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#renewalWaits.push(new RenewalWait(this.#core, limit, resolve, reject))
      this.#core.heartbeat.add(this)
    })
  }

  // Claims.

  /** `begunAt`: when it began to wait; not given if it was held at once. */
  addHold(hold: KeptHold, begunAt: number | undefined): void {
    const token = hold.claimToken
    if (this.waiting.delete(token)) {
      // It came to hold after it had waited, so its time counts from now on.
      if (this.timing.renewal !== 'automatic') this.#core.heartbeat.add(this)
    }
    this.holds.add(hold)
    const { events, timers } = this.#core
    if (!events.hasListeners('acquired')) return
    const now = timers.now()
    const waited = now - (begunAt ?? now)
    events.emit('acquired', { lease: this.id, keys: hold.keys, token, waited })
  }

  /** The claim waits in the queue. Until it holds, its lease is kept, whatever its strategy. */
  addWaiter(acquisition: Acquisition): void {
    this.waiting.add(acquisition)
    if (this.#renewAt < Infinity) return
    this.#renewAt = this.#planRenewal(this.#sentAt)
    this.#core.timers.schedule(this, this.#nextTime())
  }

  /** A claim call begins. Its end must be reported with the number that this returns. */
  beginClaimCall(): number {
    this.#wasUsed = true
    this.#callsSince++
    return this.#epoch
  }

  endClaimCall(epoch: number): void {
    if (epoch === this.#epoch) this.#callsSince--
    else if (--this.#callsBefore === 0) this.watch.claimCallsEnded(this.#epoch)
  }

  get epoch(): number {
    return this.#epoch
  }

  /** Has the watch notified when all claim calls that are now in flight have ended. */
  markClaimCalls(): void {
    if (this.#callsBefore > 0) return
    this.#epoch++
    this.#callsBefore = this.#callsSince
    this.#callsSince = 0
    if (this.#callsBefore === 0) this.watch.claimCallsEnded(this.#epoch)
  }

  /** Removes a claim at the store that nobody here wants, however long that takes. */
  discard(keys: readonly Key[], token: Token): void {
    if (this.alive) void new ReleaseCall(this.#core, this, keys, token).start()
  }

  /** Somebody removed one claim by force, which held or waited. The lease lives on. */
  claimRemoved(token: Token, key: Key | undefined, end: End | undefined): void {
    const hold = this.holds.get(token)
    const entry = (hold ?? this.waiting.get(token))!
    this.holds.delete(token)
    this.waiting.delete(token)
    const loss = lossBy(end ?? { reason: 'revoked' }, 'it')
    for (const other of entry.keys) if (other !== key) this.discard([other], token)
    entry.lose(loss)
    if (hold !== undefined) this.#emitEnd([hold], loss)
    this.retireIfUnused()
  }

  /** Ends a lease that was granted for one claim, when that claim is gone. */
  retireIfUnused(): void {
    if (!this.#isShared && this.alive && this.#isUnused()) this.retire()
  }

  // The end.

  /** The store says that the lease has ended. */
  endedByStore(end: End | undefined): void {
    this.lose(lossBy(end, 'its lease'))
  }

  /** Gives up everything under the lease. What happens at the store is the caller's concern. */
  lose(loss: Loss): void {
    if (!this.alive) return
    const holds = this.holds.values()
    const waiting = this.waiting.values()
    this.loss = loss
    this.#stop()
    for (const entry of [...holds, ...waiting]) entry.lose(loss)
    this.#failRenewalWaits(lostError([this.id], 0, loss))
    this.#emitEnd(holds, loss)
  }

  /** Ends a lease that has nothing under it. */
  retire(): void {
    this.#stop()
    this.#failRenewalWaits(new LeaseholdError('claim-not-found', 'it was released meanwhile'))
    revokeLease(this.#core, this.id, 'unused')
  }

  #check(now: number): void {
    if (this.#state === 'lost') return
    if (now >= this.#keptUntil) this.#giveUp()
    else if (now >= this.#heldUntil && this.#state === 'held') {
      this.#state = 'lapsed'
      this.#core.events.emit('lapsed', { lease: this.id, ttl: this.timing.ttl })
    }
  }

  #recover(): void {
    this.#state = 'held'
    this.#core.events.emit('recovered', { lease: this.id, ttl: this.timing.ttl })
    for (const acquisition of this.waiting.values()) acquisition.leaseRecovered()
  }

  /** No answer came until the last deadline: it is lost, before anyone else can hold. */
  #giveUp(): void {
    const loss = this.#lossByTime()
    this.lose(loss)
    // A renewal may have arrived after all, and then the key would stay blocked for a whole ttl.
    if (loss.reason !== 'broken') revokeLease(this.#core, this.id, 'given up by its holder')
    // The same break, only sooner: the key is free, and its history says by whom and why.
    else revokeLease(this.#core, this.id, loss, this.#core.store.guarantees.ttl.min)
  }

  #lossByTime(): Loss {
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

  #failRenewalWaits(error: LeaseholdError): void {
    for (const wait of this.#renewalWaits) wait.lost(error)
  }

  #stop(): void {
    this.#state = 'lost'
    this.#core.timers.drop(this)
    this.#core.leases.delete(this)
    this.watch.close()
    this.holds.clear()
    this.waiting.clear()
  }

  /**
   * Reports that holds ended, other than by a release. A lease without holds reports nothing, and the
   * end by `close` is no loss.
   */
  #emitEnd(holds: readonly KeptHold[], loss: Loss): void {
    const { events } = this.#core
    const name = loss.reason === 'closed' ? 'closed' : 'lost'
    if (holds.length === 0 || !events.hasListeners(name)) return
    const event = lossEvent(this.id, holds, loss)
    if (name === 'lost') events.emit('lost', event)
    else events.emit('closed', { lease: event.lease, claims: event.claims })
  }

  #cap(since: number, remaining: number, end: End | undefined): void {
    const at = since + remaining * this.timing.rate - this.timing.margin
    if (at >= this.#capAt) return
    const isNew = this.#capEnd === undefined || this.#capAt - at > SAME_BREAK_MS
    this.#capAt = at
    this.#capEnd = end
    this.#heldUntil = Math.min(this.#heldUntil, at)
    this.#keptUntil = Math.min(this.#keptUntil, at)
    if (end === undefined || !isNew) return
    const { by, why } = end
    const left = Math.max(0, at - this.#core.timers.now())
    this.#core.events.emit('broken', { lease: this.id, remaining: left, by, why })
  }

  /** When to renew after a send: earlier by a random part, and on a step shared with others. */
  #planRenewal(sentAt: number): number {
    const { ttl, renewal } = this.timing
    const automatic = renewal === 'automatic'
    if (ttl === Infinity || !(automatic || this.waiting.size > 0)) return Infinity
    const every = automatic ? this.timing.every : ttl / 2
    const { settings, random, phase } = this.#core
    const at = sentAt + every * (1 - settings.jitter * random.next())
    const step = 2 ** Math.floor(Math.log2(every * STEP_PART))
    return at - ((at + phase * step) % step)
  }

  #nextTime(): number {
    return Math.min(this.#renewAt, this.#state === 'held' ? this.#heldUntil : this.#keptUntil)
  }

  #isUnused(): boolean {
    const calls = this.#callsSince + this.#callsBefore
    return this.holds.size === 0 && this.waiting.size === 0 && calls === 0
  }
}
