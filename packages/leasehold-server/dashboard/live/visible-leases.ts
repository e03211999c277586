import { type End, isLeaseholdError, type Lease, type LeaseStore } from 'leasehold/port'
import type { Mirror } from '../model/mirror.ts'
import { changed } from './frames.ts'
import { LeaseWatches } from './lease-watches.ts'

/** The most reads in flight. */
const READS_MAX = 8
/** The shortest interval for reading a lease again that seems to have ended. */
const REREAD_MS = 2000
const HEARTBEATS_KEPT = 120
const FOLLOWED_MAX = 500
/** A lease has left the screen if it was not drawn for this many updates; frames may be late. */
const UPDATES_KEPT = 8
/** The most leases without claims to look up; any others are assumed to have ended. */
const CHECKED_MAX = 200
const CHECK_MS = 1500
const UNKNOWN_MAX = 1000
const DISCOVERED_AT_ONCE = 4
const BREAKS_MAX = 1000

/**
 * The leases on the screen and their deadlines, which the server's heartbeats extend. The server sends
 * heartbeats only for these. A lease is therefore read when it appears on the screen, and again when
 * it seems to have expired or was broken.
 */
export class VisibleLeases {
  readonly #mirror: Mirror
  readonly #now: () => number
  readonly #heartbeats = new Map<string, number[]>()
  /** When each lease was last read. */
  readonly #readAt = new Map<string, number>()
  /** Leases that were read since they appeared on the screen. */
  readonly #fresh = new Set<string>()
  readonly #unchecked = new Set<string>()
  /** Leases that are known only from their claims. */
  readonly #unknown = new Set<string>()
  /** The leases on the screen, and the update in which each was last drawn. */
  readonly #shown = new Map<string, number>()
  readonly #breaks: Map<string, End>
  readonly #watches = new LeaseWatches({
    capped: (id, end) => {
      if (end?.reason === 'broken') this.addBreak(id, end)
      void this.read(id)
    },
    gone: (id) => void this.read(id),
  })
  #updates = 0
  #inFlight = 0
  #isOffline = false
  #store: LeaseStore | undefined
  #followed = ''
  /** Called with the leases to follow when they change. */
  follow: (leases: readonly string[]) => void = () => {}

  /** `breaks` are the received breaks: the store announces each only once. */
  constructor(mirror: Mirror, now: () => number, breaks = new Map<string, End>()) {
    this.#mirror = mirror
    this.#now = now
    this.#breaks = breaks
    mirror.emptied = ({ id }) => this.#emptied(id)
    mirror.discovered = ({ id }) => {
      if (this.#unknown.size < UNKNOWN_MAX) this.#unknown.add(id)
    }
  }

  open(store: LeaseStore): void {
    this.#store = store
    this.#followed = ''
    this.#reset()
  }

  /** The server has become unreachable or reachable; the known leases may be outdated. */
  setOffline(isOffline: boolean): void {
    if (this.#isOffline && !isOffline) this.#reset()
    this.#isOffline = isOffline
  }

  /** Marks a lease as visible in this frame. Returns it if it was read since it appeared. */
  show(id: string): Lease | undefined {
    this.#shown.set(id, this.#updates)
    return this.#fresh.has(id) ? this.#mirror.leases.get(id)?.detail : undefined
  }

  /** Whether the lease was read since it appeared on the screen. */
  hasRead(id: string): boolean {
    return this.#fresh.has(id)
  }

  heartbeatsOf(id: string): readonly number[] {
    return this.#heartbeats.get(id) ?? []
  }

  /** Who broke a lease and why, if the page was notified. */
  breakOf(id: string): End | undefined {
    return this.#breaks.get(id)
  }

  /** Records that a lease was broken. */
  addBreak(id: string, end: End): void {
    this.#breaks.set(id, end)
    if (this.#breaks.size <= BREAKS_MAX) return
    const [oldest] = this.#breaks.keys()
    this.#breaks.delete(oldest!)
  }

  /** The server renewed this lease, at a time on its clock. */
  heartbeat(id: string, at: number): void {
    const row = this.#mirror.leases.get(id)
    const times = this.#heartbeats.get(id) ?? []
    times.push(at)
    if (times.length > HEARTBEATS_KEPT) times.shift()
    this.#heartbeats.set(id, times)
    if (row?.detail === undefined) return
    const { ttl, grace, endOfLife } = row.detail
    const until = Math.min(at + ttl + grace, endOfLife)
    row.detail = { ...row.detail, renewedAt: at, until }
    changed()
  }

  /** Called regularly: reads visible leases that are unknown or seem to have ended. */
  update(): void {
    this.#updates++
    for (const [id, at] of this.#shown) if (this.#updates - at > UPDATES_KEPT) this.#leave(id)
    const leases = [...this.#shown.keys()].slice(-FOLLOWED_MAX)
    const followed = leases.join()
    if (followed !== this.#followed) {
      this.#followed = followed
      this.follow(leases)
    }
    if (this.#isOffline || this.#store === undefined) return
    this.#watches.set(this.#store, leases)
    this.#readDue()
    this.#readUnknown()
  }

  /** Reads one lease from the store. */
  async read(id: string): Promise<void> {
    if (this.#store === undefined) return
    this.#readAt.set(id, this.#now())
    this.#inFlight++
    try {
      const { lease } = await this.#store.read({ lease: id, limit: 1 })
      if (lease === undefined) this.#mirror.removeLease(id)
      else this.#mirror.putLease(lease)
      if (this.#shown.has(id)) this.#fresh.add(id)
      changed()
    } catch (error) {
      // Without an answer, the page shows only what it knows.
      if (isLeaseholdError(error, 'forbidden')) this.#refused(id)
    } finally {
      this.#inFlight--
      this.#readDue()
    }
  }

  #reset(): void {
    this.#readAt.clear()
    this.#fresh.clear()
    // Missed heartbeats would look like a pause.
    this.#heartbeats.clear()
    this.#watches.clear()
  }

  /** A user who may list leases may not be allowed to read one: use the listed data. */
  #refused(id: string): void {
    this.#readAt.set(id, Infinity)
    if (this.#shown.has(id)) this.#fresh.add(id)
    changed()
  }

  #leave(id: string): void {
    this.#shown.delete(id)
    this.#fresh.delete(id)
    this.#heartbeats.delete(id)
    this.#readAt.delete(id)
  }

  #readDue(): void {
    if (this.#isOffline) return
    for (const id of this.#shown.keys()) {
      if (this.#inFlight >= READS_MAX) return
      if (this.#isDue(id)) void this.read(id)
    }
  }

  /** Reads a few new leases that are not on the screen, to know their parents. */
  #readUnknown(): void {
    let left = DISCOVERED_AT_ONCE
    for (const id of this.#unknown) {
      if (left === 0 || this.#inFlight >= READS_MAX) return
      this.#unknown.delete(id)
      const row = this.#mirror.leases.get(id)
      if (row === undefined || row.detail !== undefined) continue
      left--
      void this.read(id)
    }
  }

  #isDue(id: string): boolean {
    const readAt = this.#readAt.get(id) ?? -Infinity
    const now = this.#now()
    if (now - readAt < REREAD_MS) return false
    const detail = this.#mirror.leases.get(id)?.detail
    if (!this.#fresh.has(id)) return true
    // A lease that was read and not found has ended.
    return detail !== undefined && now > detail.until - detail.grace
  }

  /** A lease without claims may get new ones, so it is looked up after a while. */
  #emptied(id: string): void {
    if (this.#unchecked.size >= CHECKED_MAX || this.#store === undefined) {
      this.#mirror.removeLease(id)
      return
    }
    this.#unchecked.add(id)
    setTimeout(() => {
      this.#unchecked.delete(id)
      const row = this.#mirror.leases.get(id)
      if (row === undefined || row.keys.length > 0) return
      if (this.#inFlight >= READS_MAX) this.#mirror.removeLease(id)
      else void this.read(id)
    }, CHECK_MS)
  }
}
