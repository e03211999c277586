import type { Lease, LeaseStore } from 'leasehold/port'
import type { Mirror } from '../model/mirror.ts'
import { changed } from './frames.ts'

/** So many questions are on their way at a time. */
const AT_ONCE = 8
/** A lease that seems to be over is asked for again, at most so often. */
const AGAIN_MS = 2000
const BEATS_KEPT = 120
const FOLLOWED_MAX = 500
/** So many leases that lost their last claim are looked up; of more it is assumed that they ended. */
const CHECKED_MAX = 200
const CHECK_MS = 1500
const UNKNOWN_MAX = 1000
const LEARNT_AT_ONCE = 4

/**
 * What is known of the leases that are on the screen: their deadlines, moved on by the heartbeats
 * that the server tells of. One whose time is up, as far as is known here, is looked up.
 */
export class LeaseBook {
  readonly #mirror: Mirror
  readonly #now: () => number
  readonly #beats = new Map<string, number[]>()
  /** When each was last asked for. */
  readonly #asked = new Map<string, number>()
  readonly #unchecked = new Set<string>()
  /** Leases that were seen by their claims only. */
  readonly #unknown = new Set<string>()
  #wanted = new Set<string>()
  #wanting = new Set<string>()
  #inFlight = 0
  #store: LeaseStore | undefined
  #told = ''
  /** Called with the leases whose heartbeats are wanted, when they are others than before. */
  follow: (leases: readonly string[]) => void = () => {}

  constructor(mirror: Mirror, now: () => number) {
    this.#mirror = mirror
    this.#now = now
    mirror.emptied = ({ id }) => this.#emptied(id)
    mirror.discovered = ({ id }) => {
      if (this.#unknown.size < UNKNOWN_MAX) this.#unknown.add(id)
    }
  }

  open(store: LeaseStore): void {
    this.#store = store
    this.#told = ''
    this.#asked.clear()
  }

  /** A lease is on the screen in this frame: answers with what is known of it. */
  see(id: string): Lease | undefined {
    this.#wanting.add(id)
    return this.#mirror.leases.get(id)?.detail
  }

  beatsOf(id: string): readonly number[] {
    return this.#beats.get(id) ?? []
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
    this.#wanted = this.#wanting
    this.#wanting = new Set()
    const leases = [...this.#wanted].slice(0, FOLLOWED_MAX)
    for (const known of [this.#beats, this.#asked]) {
      for (const id of known.keys()) if (!this.#wanted.has(id)) known.delete(id)
    }
    const told = leases.join()
    if (told !== this.#told) {
      this.#told = told
      this.follow(leases)
    }
    for (const id of leases) if (this.#isDue(id)) void this.ask(id)
    this.#learn()
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

  /** Reads one lease, and what it has claims on. */
  async ask(id: string): Promise<void> {
    if (this.#store === undefined || this.#inFlight >= AT_ONCE) return
    this.#asked.set(id, this.#now())
    this.#inFlight++
    try {
      const { lease } = await this.#store.read({ lease: id, limit: 1 })
      if (lease === undefined) this.#mirror.removeLease(id)
      else this.#mirror.putLease(lease)
      changed()
    } catch {
      // Refused or unanswered: it is shown without what is not known.
    } finally {
      this.#inFlight--
    }
  }

  #isDue(id: string): boolean {
    const detail = this.#mirror.leases.get(id)?.detail
    const asked = this.#asked.get(id) ?? -Infinity
    const now = this.#now()
    if (now - asked < AGAIN_MS) return false
    if (detail === undefined) return true
    return now > detail.until - detail.grace
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
