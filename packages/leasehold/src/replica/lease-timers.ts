import {
  type DeadlineSource,
  DISCARD_CHANGES,
  type GrantedLease,
  type Kernel,
  LazyDeadlines,
} from '../kernel/index.ts'
import type { End, Revision, Time } from '../port/index.ts'
import { Column } from './column.ts'

/** A lease whose end was proposed is looked at again after so long, if it is still there. */
const AGAIN_MS = 1000

/**
 * When the time of each lease is over on this replica's own clock, counted from when this replica
 * applied its grant or its last renewal.
 *
 * That is safe: the holder counts from before it sent the renewal, and this replica from after it was
 * in the log. So when the ttl has passed here it has passed there, if clocks run at the same rate;
 * nobody needs to know what another clock shows. All this decides is when to propose an end. What
 * decides whether the lease ends is in the log: that no renewal is between what the proposer had
 * applied and its proposal.
 *
 * A maximum life and the period of a break are counted in the same way, from when this replica applied
 * the grant or the break. A holder learns from the answer to a renewal how much is left of them. The
 * replica that answers writes that into the renewal, and every other one waits for as long.
 */
export class LeaseTimers implements DeadlineSource {
  /** When the entry is applied that is being applied, on this clock. */
  now = 0
  readonly checkAt = new Column()
  /** How many leases there are, and a slot that all are below. */
  count = 0
  end = 0
  readonly #deadlines = new LazyDeadlines(this)
  readonly #born = new Column()
  /** The ttl and the grace together. */
  readonly #span = new Column()
  readonly #renewed = new Column()
  /** The end of its life on this clock; infinite if it has none. */
  readonly #endOfLife = new Column()
  /** What its holder was told with the last renewal may last until this, also if its life does not. */
  readonly #told = new Column()
  /** Its end was proposed, and is not proposed again before this; 0 if it was not. */
  readonly #again = new Column()

  /** How many times are kept, also of leases that have ended. */
  get size(): number {
    return this.#deadlines.size
  }

  /** No lease is due before this, on this clock. */
  get next(): number {
    return this.#deadlines.next
  }

  /**
   * The lease in this slot was renewed, by a member that counts so much left of its life; infinite if
   * it knew of no limit. The holder was told no more, so this replica waits for as long. And it
   * learns from it: if it has joined late, its own count is too late, and no count is ever too early.
   */
  renewed(slot: number, lifeLeft: number): void {
    const span = this.#span.get(slot)
    this.#renewed.set(slot, this.now)
    this.#told.set(slot, this.now + Math.min(lifeLeft, span))
    this.#endOfLife.set(slot, Math.min(this.#endOfLife.get(slot), this.now + lifeLeft))
    if (this.#again.get(slot) === 0 && lifeLeft >= span) return
    this.#again.set(slot, 0)
    this.#deadlines.schedule(slot)
  }

  /**
   * Learns of all leases of a kernel at once. Each has its full ttl from now on, and all that is known
   * to be left of its life: late, never early.
   */
  learn(kernel: Kernel, lifeLeft: (slot: number) => number): void {
    const granted = (_: Revision, slot: number, lease: GrantedLease): void => {
      this.#add(slot, lease, lifeLeft(slot))
      this.#told.set(slot, this.now + lease.ttl + lease.grace)
    }
    kernel.describe(0, kernel.slots, { ...DISCARD_CHANGES, granted })
  }

  /** How much is left of the life of this lease, by this replica's count; infinite if it has no limit. */
  lifeLeft(slot: number, now: number): number {
    return Math.max(0, this.#endOfLife.get(slot) - now)
  }

  /** The same at this moment, if it is what ends the lease unless it is renewed; or else infinite. */
  remaining(slot: number): number {
    const left = this.lifeLeft(slot, this.now)
    return left <= this.#span.get(slot) ? left : Infinity
  }

  /** The leases that are due, at most so many. Each is given again later if it is still there. */
  due(now: number, most: number): number[] {
    const due: number[] = []
    while (due.length < most) {
      const slot = this.#deadlines.nextDue(now)
      if (slot === undefined) break
      if (slot < 0) continue
      due.push(slot)
      this.#again.set(slot, now + AGAIN_MS)
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
    this.#again.set(slot, 0)
    this.#endOfLife.set(slot, this.now + lifeLeft)
    this.#told.set(slot, 0)
    this.#deadlines.schedule(slot)
  }

  capped(_revision: Revision, slot: number, at: Time, endOfLife: Time): void {
    this.#endOfLife.set(slot, this.now + (endOfLife - at))
    // What its holder was told before does not keep it: a break may be shorter than that.
    this.#told.set(slot, 0)
    this.#deadlines.schedule(slot)
  }

  ended(_revision: Revision, slot: number, _at: Time, _end: End): void {
    this.#born.set(slot, 0)
    this.count--
  }

  /** Whether its maximum life or a break comes before its ttl is over. */
  isAtEndOfLife(slot: number): boolean {
    return this.#lifeEnds(slot) <= this.#renewed.get(slot) + this.#span.get(slot)
  }

  deadline(slot: number): number {
    if (this.#born.get(slot) === 0) return Infinity
    const deadline = this.#renewed.get(slot) + this.#span.get(slot)
    return Math.max(Math.min(deadline, this.#lifeEnds(slot)), this.#again.get(slot))
  }

  /** When its life is over here, and for its holder too. */
  #lifeEnds(slot: number): number {
    return Math.max(this.#endOfLife.get(slot), this.#told.get(slot))
  }
}
