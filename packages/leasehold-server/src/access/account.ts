import type { Clock, LeaseId } from 'leasehold/port'
import { exceeded, type Quota, Usage } from './quota.ts'

/** What a call would add. */
export interface Wanted {
  readonly leases: number
  readonly claims: number
}

/** A lease of a principal, with how many claims, and the tag of the request that granted it. */
export interface Counted {
  claims: number
  readonly tag: string | undefined
  /** Raised by every call on the lease: a reading that began before such a call is out of date. */
  version: number
}

/** Counting may take one twentieth of the time: the next count waits so many times as long. */
const PACE = 20

/** So many leases with claims that had to wait are remembered; the oldest are forgotten first. */
const QUEUED_MAX = 100_000
/** Leases that are looked up for one principal in one tick of the event loop: each costs a hash. */
const LOOK_UPS_MAX = 256

/** How long the last count took, and so when the next one is due. */
export class Pace {
  took = 0
  #endedAt = -Infinity

  isDue(clock: Clock): boolean {
    return clock.now() >= this.#endedAt + this.took * PACE
  }

  async time(clock: Clock, count: () => Promise<void>): Promise<void> {
    const begun = clock.now()
    try {
      await count()
    } finally {
      this.#endedAt = clock.now()
      this.took = this.#endedAt - begun
    }
  }
}

/**
 * What one principal has, as far as this server knows. The truth is in the store. A count goes up
 * when a call is done, and goes down only by a reading of the store, because an answer may be the
 * repeated answer of an earlier request.
 */
export class Account {
  readonly name: string
  readonly usage = new Usage()
  /** Whether the leases were read from the store, so that the count is not too low. */
  isCounted = false
  readonly leases = new Map<LeaseId, Counted>()
  /** Leases that were used since they were last read: they may have ended, or have fewer claims. */
  readonly stale = new Set<LeaseId>()
  readonly pace = new Pace()
  /** What the calls that are under way will add: several that come at once must not pass together. */
  readonly #coming = { leases: 0, claims: 0 }
  #queued = new Set<LeaseId>()
  #lookUpsLeft = LOOK_UPS_MAX
  readonly #lookUpsWaiting: (() => void)[] = []
  #refilling = false

  constructor(name: string) {
    this.name = name
  }

  /** Reserves what a call would add, until the call is answered. */
  async reserve<Answer>(wanted: Wanted, call: () => Promise<Answer>): Promise<Answer> {
    this.#coming.leases += wanted.leases
    this.#coming.claims += wanted.claims
    try {
      return await call()
    } finally {
      this.#coming.leases -= wanted.leases
      this.#coming.claims -= wanted.claims
    }
  }

  excess(quota: Quota, { leases, claims }: Wanted): Error | undefined {
    const { usage, name } = this
    if (leases > 0 && usage.leases + this.#coming.leases + leases > (quota.leases ?? Infinity)) {
      return exceeded(name, `${quota.leases} leases at a time`, 'end one first')
    }
    if (claims > 0 && usage.claims + this.#coming.claims + claims > (quota.claims ?? Infinity)) {
      return exceeded(name, `${quota.claims} claims at a time`, 'release one first')
    }
    return undefined
  }

  /** Sets what a lease is known to have. */
  set(lease: LeaseId, claims: number, tag: string | undefined): void {
    const counted = this.leases.get(lease)
    this.usage.claims += claims - (counted?.claims ?? 0)
    if (counted === undefined) this.leases.set(lease, { claims, tag, version: 0 })
    else counted.claims = claims
    this.usage.leases = this.leases.size
  }

  /** Adds up anew, after the principal was counted without its leases being remembered. */
  sum(): void {
    this.usage.leases = this.leases.size
    this.usage.claims = 0
    for (const { claims } of this.leases.values()) this.usage.claims += claims
  }

  /** A call used the lease: what it has must be read again before anything is refused. */
  touch(lease: LeaseId, moreClaims = 0): void {
    const counted = this.leases.get(lease)
    if (counted === undefined) return
    counted.version++
    counted.claims += moreClaims
    this.usage.claims += moreClaims
    this.stale.add(lease)
  }

  /** A claim of this lease had to wait. */
  queued(lease: LeaseId): void {
    this.#queued.add(lease)
    if (this.#queued.size <= QUEUED_MAX) return
    for (const oldest of this.#queued) {
      this.#queued.delete(oldest)
      return
    }
  }

  /** The leases with claims that had to wait; they are forgotten by this. */
  takeQueued(): ReadonlySet<LeaseId> {
    const queued = this.#queued
    this.#queued = new Set()
    return queued
  }

  /** To be awaited before a lease is looked up: others have their turn after so many. */
  lookUp(clock: Clock): Promise<void> | undefined {
    this.#refillSoon(clock)
    if (this.#lookUpsLeft-- > 0) return undefined
    return new Promise((resolve) => this.#lookUpsWaiting.push(resolve))
  }

  #refillSoon(clock: Clock): void {
    if (this.#refilling) return
    this.#refilling = true
    clock.defer(() => {
      this.#refilling = false
      const next = this.#lookUpsWaiting.splice(0, LOOK_UPS_MAX)
      this.#lookUpsLeft = LOOK_UPS_MAX - next.length
      if (next.length > 0) this.#refillSoon(clock)
      for (const resolve of next) resolve()
    })
  }

  forget(lease: LeaseId): void {
    this.#queued.delete(lease)
    this.usage.claims -= this.leases.get(lease)?.claims ?? 0
    this.leases.delete(lease)
    this.stale.delete(lease)
    this.usage.leases = this.leases.size
  }
}
