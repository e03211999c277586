import type { Clock, LeaseId } from 'leasehold/port'
import { exceeded, type Quota, Usage } from './quota.ts'

/** The leases and claims that a call would add. */
export interface Wanted {
  readonly leases: number
  readonly claims: number
}

/** A lease of a principal with its number of claims and the tag of the request that granted it. */
export interface Counted {
  claims: number
  readonly tag: string | undefined
  /** Incremented by every call on the lease: a read that started earlier is outdated. */
  version: number
}

/** Counting may take 1/20 of the time: the pause is this many times as long as the count. */
const PACE = 20

/** The most leases with waiting claims to remember; the oldest are forgotten first. */
const QUEUED_MAX = 100_000
/** The most lease look-ups of one principal per tick of the event loop: each costs a hash. */
const LOOK_UPS_MAX = 256

/** When the next count is due, from the duration of the last one. */
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
 * The leases and claims of one principal, as far as this server knows; the store has the truth. A
 * finished call increases a count. Only a read of the store decreases it, because an answer may
 * repeat the answer of an earlier request.
 */
export class Account {
  readonly name: string
  readonly usage = new Usage()
  /** Whether the leases were read from the store, so that the count is complete. */
  isCounted = false
  readonly leases = new Map<LeaseId, Counted>()
  /** Leases that were used since the last read: they may have ended or have fewer claims. */
  readonly stale = new Set<LeaseId>()
  readonly pace = new Pace()
  /** What running calls will add, so that concurrent calls cannot exceed the quota together. */
  readonly #coming = { leases: 0, claims: 0 }
  #queued = new Set<LeaseId>()
  #lookUpsLeft = LOOK_UPS_MAX
  readonly #lookUpsWaiting: (() => void)[] = []
  #refilling = false

  constructor(name: string) {
    this.name = name
  }

  /** Reserves what a call would add, until it is answered. */
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

  /** Sets the claims of a lease. */
  set(lease: LeaseId, claims: number, tag: string | undefined): void {
    const counted = this.leases.get(lease)
    this.usage.claims += claims - (counted?.claims ?? 0)
    if (counted === undefined) this.leases.set(lease, { claims, tag, version: 0 })
    else counted.claims = claims
    this.usage.leases = this.leases.size
  }

  /** Computes the sums again, after a count without individual leases. */
  sum(): void {
    this.usage.leases = this.leases.size
    this.usage.claims = 0
    for (const { claims } of this.leases.values()) this.usage.claims += claims
  }

  /** A call used the lease: it must be read again before a call is refused. */
  touch(lease: LeaseId, moreClaims = 0): void {
    const counted = this.leases.get(lease)
    if (counted === undefined) return
    counted.version++
    counted.claims += moreClaims
    this.usage.claims += moreClaims
    this.stale.add(lease)
  }

  /** Remembers that a claim of this lease waits. */
  queued(lease: LeaseId): void {
    this.#queued.add(lease)
    if (this.#queued.size <= QUEUED_MAX) return
    for (const oldest of this.#queued) {
      this.#queued.delete(oldest)
      return
    }
  }

  /** Returns and forgets the leases with waiting claims. */
  takeQueued(): ReadonlySet<LeaseId> {
    const queued = this.#queued
    this.#queued = new Set()
    return queued
  }

  /** Await this before a look-up: after a number of them, others come first. */
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
