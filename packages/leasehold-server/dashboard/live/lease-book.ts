import { type End, isLeaseholdError, type Lease, type LeaseStore } from 'leasehold/port'
import type { Mirror } from '../model/mirror.ts'
import { changed } from './frames.ts'
import { LeaseWatches } from './lease-watches.ts'

/** So many questions are on their way at a time. */
const AT_ONCE = 8
/** A lease that seems to be over is asked for again, at most so often. */
const AGAIN_MS = 2000
const BEATS_KEPT = 120
const FOLLOWED_MAX = 500
/** A lease has left the screen when it was not drawn for so many looks: frames may be late. */
const LOOKS_KEPT = 8
/** So many leases that lost their last claim are looked up; of more it is assumed that they ended. */
const CHECKED_MAX = 200
const CHECK_MS = 1500
const UNKNOWN_MAX = 1000
const LEARNT_AT_ONCE = 4
const CUTS_MAX = 1000

/**
 * What is known of the leases that are on the screen: their deadlines, moved on by the heartbeats
 * that the server tells of. Of others no heartbeats are told, so that one is asked for when it comes
 * there; and again when its time is up, as far as is known here, or when it was broken.
 */
export class LeaseBook {
  readonly #mirror: Mirror
  readonly #now: () => number
  readonly #beats = new Map<string, number[]>()
  /** When each was last asked for. */
  readonly #asked = new Map<string, number>()
  /** Those that were read since they are on the screen. */
  readonly #fresh = new Set<string>()
  readonly #unchecked = new Set<string>()
  /** Leases that were seen by their claims only. */
  readonly #unknown = new Set<string>()
  /** What is on the screen, and at which look it was last drawn. */
  readonly #seen = new Map<string, number>()
  readonly #cuts: Map<string, End>
  readonly #watches = new LeaseWatches({
    capped: (id, end) => {
      if (end?.reason === 'broken') this.cut(id, end)
      void this.ask(id)
    },
    gone: (id) => void this.ask(id),
  })
  #looks = 0
  #inFlight = 0
  #isAway = false
  #store: LeaseStore | undefined
  #told = ''
  /** Called with the leases whose heartbeats are wanted, when they are others than before. */
  follow: (leases: readonly string[]) => void = () => {}

  /** `cuts` are the breaks that were heard of: the store tells of each only once. */
  constructor(mirror: Mirror, now: () => number, cuts = new Map<string, End>()) {
    this.#mirror = mirror
    this.#now = now
    this.#cuts = cuts
    mirror.emptied = ({ id }) => this.#emptied(id)
    mirror.discovered = ({ id }) => {
      if (this.#unknown.size < UNKNOWN_MAX) this.#unknown.add(id)
    }
  }

  open(store: LeaseStore): void {
    this.#store = store
    this.#told = ''
    this.#renew()
  }

  /** The server is away, or back: what is known may be old then. */
  away(isAway: boolean): void {
    if (this.#isAway && !isAway) this.#renew()
    this.#isAway = isAway
  }

  /** A lease is on the screen in this frame: answers with what is known of it by now. */
  see(id: string): Lease | undefined {
    this.#seen.set(id, this.#looks)
    return this.#fresh.has(id) ? this.#mirror.leases.get(id)?.detail : undefined
  }

  /** Whether the store was asked for it since it is on the screen, and has answered. */
  hasRead(id: string): boolean {
    return this.#fresh.has(id)
  }

  beatsOf(id: string): readonly number[] {
    return this.#beats.get(id) ?? []
  }

  /** Who broke a lease and why, where that was heard here. */
  cutOf(id: string): End | undefined {
    return this.#cuts.get(id)
  }

  /** Somebody has broken a lease. */
  cut(id: string, end: End): void {
    this.#cuts.set(id, end)
    if (this.#cuts.size <= CUTS_MAX) return
    const [oldest] = this.#cuts.keys()
    this.#cuts.delete(oldest!)
  }

  /** The server has renewed this lease at a time on its clock. */
  beat(id: string, at: number): void {
    const row = this.#mirror.leases.get(id)
    const times = this.#beats.get(id) ?? []
    times.push(at)
    if (times.length > BEATS_KEPT) times.shift()
    this.#beats.set(id, times)
    if (row?.detail === undefined) return
    const { ttl, grace, endOfLife } = row.detail
    const until = Math.min(at + ttl + grace, endOfLife)
    row.detail = { ...row.detail, renewedAt: at, until }
    changed()
  }

  /** Once in a while: asks for what is on the screen and not known, or over as far as is known. */
  look(): void {
    this.#looks++
    for (const [id, at] of this.#seen) if (this.#looks - at > LOOKS_KEPT) this.#leave(id)
    const leases = [...this.#seen.keys()].slice(-FOLLOWED_MAX)
    const told = leases.join()
    if (told !== this.#told) {
      this.#told = told
      this.follow(leases)
    }
    if (this.#isAway || this.#store === undefined) return
    this.#watches.set(this.#store, leases)
    this.#askDue()
    this.#learn()
  }

  /** Reads one lease, and what it has claims on. */
  async ask(id: string): Promise<void> {
    if (this.#store === undefined) return
    this.#asked.set(id, this.#now())
    this.#inFlight++
    try {
      const { lease } = await this.#store.read({ lease: id, limit: 1 })
      if (lease === undefined) this.#mirror.removeLease(id)
      else this.#mirror.putLease(lease)
      if (this.#seen.has(id)) this.#fresh.add(id)
      changed()
    } catch (error) {
      // Unanswered: it is shown without what is not known.
      if (isLeaseholdError(error, 'forbidden')) this.#refused(id)
    } finally {
      this.#inFlight--
      this.#askDue()
    }
  }

  #renew(): void {
    this.#asked.clear()
    this.#fresh.clear()
    // What was not told meanwhile would seem to be a pause.
    this.#beats.clear()
    this.#watches.clear()
  }

  /** Who may list leases may not always read one: then what the list has told is all there is. */
  #refused(id: string): void {
    this.#asked.set(id, Infinity)
    if (this.#seen.has(id)) this.#fresh.add(id)
    changed()
  }

  #leave(id: string): void {
    this.#seen.delete(id)
    this.#fresh.delete(id)
    this.#beats.delete(id)
    this.#asked.delete(id)
  }

  #askDue(): void {
    if (this.#isAway) return
    for (const id of this.#seen.keys()) {
      if (this.#inFlight >= AT_ONCE) return
      if (this.#isDue(id)) void this.ask(id)
    }
  }

  /** A few of those that are new and on no screen, so that the families of leases are known. */
  #learn(): void {
    let left = LEARNT_AT_ONCE
    for (const id of this.#unknown) {
      if (left === 0 || this.#inFlight >= AT_ONCE) return
      this.#unknown.delete(id)
      const row = this.#mirror.leases.get(id)
      if (row === undefined || row.detail !== undefined) continue
      left--
      void this.ask(id)
    }
  }

  #isDue(id: string): boolean {
    const asked = this.#asked.get(id) ?? -Infinity
    const now = this.#now()
    if (now - asked < AGAIN_MS) return false
    const detail = this.#mirror.leases.get(id)?.detail
    if (!this.#fresh.has(id)) return true
    // What was read and is not there is over, and does not come back.
    return detail !== undefined && now > detail.until - detail.grace
  }

  /** A lease without claims may live on, for the next: it is looked up after a while. */
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
      if (this.#inFlight >= AT_ONCE) this.#mirror.removeLease(id)
      else void this.ask(id)
    }, CHECK_MS)
  }
}
