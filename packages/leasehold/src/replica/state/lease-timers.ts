import {
  type DeadlineSource,
  DISCARD_CHANGES,
  type GrantedLease,
  type Kernel,
  LazyDeadlines,
} from '../../kernel/index.ts'
import type { End, Revision, Time } from '../../port/index.ts'
import { Column } from './column.ts'

/** The wait before the end of a lease is proposed again, if the lease still exists. */
const PROPOSE_AGAIN_MS = 1000

/**
 * When each lease expires on this replica's own clock, counted from when this replica applied the
 * grant or the last renewal.
 *
 * This is safe. The holder counts from before it sent the renewal, and this replica from after the
 * renewal was in the log. So a ttl that has passed here has passed for the holder, if both clocks run
 * at the same rate; clocks are never compared. The timers only decide when to propose an end. The log
 * decides whether the lease ends: it ends only if there is no renewal between the last entry that the
 * proposer had applied and its proposal.
 *
 * A maximum life and the period of a break are counted in the same way, from when this replica applied
 * the grant or the break. The answer to a renewal tells the holder how much is left. The replica that
 * answers writes that into the renewal, and all other replicas wait for as long.
 */
export class LeaseTimers implements DeadlineSource {
  /** The time on this clock at which the current entry is applied. */
  now = 0
  readonly checkAt = new Column()
  /** The number of leases, and the first slot above all of them. */
  count = 0
  end = 0
  readonly #deadlines = new LazyDeadlines(this)
  readonly #born = new Column()
  /** The ttl plus the grace. */
  readonly #span = new Column()
  readonly #renewed = new Column()
  /** The end of its life on this clock; `Infinity` if it has no limit. */
  readonly #endOfLife = new Column()
  /** Until when the holder may rely on the answer to its last renewal, even if its life ends before. */
  readonly #promisedUntil = new Column()
  /** Its end was proposed and is not proposed again before this time; 0 if it was not proposed. */
  readonly #proposeAgainAt = new Column()

  /** The number of deadlines in the queue, including those of ended leases. */
  get size(): number {
    return this.#deadlines.size
  }

  /** No lease is due before this time, on this clock. */
  get next(): number {
    return this.#deadlines.next
  }

  /**
   * The lease in this slot was renewed by a member that counts this much left of its life; `Infinity`
   * if there is no limit. `lifeAtMost` is what the log says of it. The holder was promised no more, so
   * this replica waits for as long. It also adopts a lower count: a replica that joined late counts too
   * much, and no replica counts too little.
   */
  renewed(slot: number, lifeLeft: number, lifeAtMost: number): void {
    const span = this.#span.get(slot)
    this.#renewed.set(slot, this.now)
    this.#promisedUntil.set(slot, this.now + Math.min(lifeLeft, boundOf(span, lifeAtMost)))
    this.#endOfLife.set(slot, Math.min(this.#endOfLife.get(slot), this.now + lifeLeft))
    if (this.#proposeAgainAt.get(slot) === 0 && lifeLeft >= span) return
    this.#proposeAgainAt.set(slot, 0)
    this.#deadlines.schedule(slot)
  }

  /**
   * Adds all leases of a kernel. Each gets its full ttl from now on, and the rest of its life as far as
   * it is known: late, never early.
   */
  restore(kernel: Kernel, lifeLeft: (slot: number) => number): void {
    const granted = (_: Revision, slot: number, lease: GrantedLease): void => {
      this.#add(slot, lease, lifeLeft(slot))
      this.#promisedUntil.set(slot, this.now + boundOf(lease.ttl + lease.grace, lifeLeft(slot)))
    }
    kernel.describe(0, kernel.slots, { ...DISCARD_CHANGES, granted })
  }

  /** How much is left of the life of this lease, by this replica's count; `Infinity` if no limit. */
  lifeLeft(slot: number, now: number): number {
    return Math.max(0, this.#endOfLife.get(slot) - now)
  }

  /** The same for the current entry, if its life ends before its ttl; otherwise `Infinity`. */
  remaining(slot: number): number {
    const left = this.lifeLeft(slot, this.now)
    return left <= this.#span.get(slot) ? left : Infinity
  }

  /** Up to `max` leases that are due. Each is returned again later if it still exists. */
  due(now: number, max: number): number[] {
    const due: number[] = []
    while (due.length < max) {
      const slot = this.#deadlines.nextDue(now)
      if (slot === undefined) break
      if (slot < 0) continue
      due.push(slot)
      this.#proposeAgainAt.set(slot, now + PROPOSE_AGAIN_MS)
      this.#deadlines.schedule(slot)
    }
    return due.sort((one, other) => one - other)
  }

  granted(_revision: Revision, slot: number, lease: GrantedLease): void {
    this.#add(slot, lease, lease.endOfLife - lease.at)
  }

  #add(slot: number, lease: GrantedLease, lifeLeft: number): void {
    this.#born.set(slot, lease.born)
    this.count++
    this.end = Math.max(this.end, slot + 1)
    this.#span.set(slot, lease.ttl + lease.grace)
    this.#renewed.set(slot, this.now)
    this.#proposeAgainAt.set(slot, 0)
    this.#endOfLife.set(slot, this.now + lifeLeft)
    this.#promisedUntil.set(slot, 0)
    this.#deadlines.schedule(slot)
  }

  capped(_revision: Revision, slot: number, at: Time, endOfLife: Time): void {
    this.#endOfLife.set(slot, this.now + (endOfLife - at))
    // An earlier promise to the holder no longer counts: a break may be shorter.
    this.#promisedUntil.set(slot, 0)
    this.#deadlines.schedule(slot)
  }

  ended(_revision: Revision, slot: number, _at: Time, _end: End): void {
    this.#born.set(slot, 0)
    this.count--
  }

  /** Whether its maximum life or a break ends it before its ttl does. */
  isAtEndOfLife(slot: number): boolean {
    return this.#lifeEnds(slot) <= this.#renewed.get(slot) + this.#span.get(slot)
  }

  deadline(slot: number): number {
    if (this.#born.get(slot) === 0) return Infinity
    const deadline = this.#renewed.get(slot) + this.#span.get(slot)
    return Math.max(Math.min(deadline, this.#lifeEnds(slot)), this.#proposeAgainAt.get(slot))
  }

  /** When its life is over both here and for its holder. */
  #lifeEnds(slot: number): number {
    return Math.max(this.#endOfLife.get(slot), this.#promisedUntil.get(slot))
  }
}

/** How long its holder may continue without a renewal. A lease without a ttl may still have a life. */
function boundOf(span: number, lifeAtMost: number): number {
  return span === Infinity ? lifeAtMost : span
}
