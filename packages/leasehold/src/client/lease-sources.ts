import type { Busy, Granted, Labels, LeaseholdError, LeaseId } from '../port/index.ts'
import type { Attempt, LeaseSource } from './attempt.ts'
import { carryOut } from './call.ts'
import type { ClientCore } from './core.ts'
import { ClaimErrand, GrantErrand, type Grantee } from './errands.ts'
import type { Keeper } from './keeper.ts'
import type { Timing } from './timing.ts'

/**
 * One lease, shared by all claims with the same timing. The first attempt gets the lease and its
 * claim in one call; those that come meanwhile wait for that lease, so that a burst makes one lease
 * and not many.
 */
export class SharedLease implements LeaseSource, Grantee {
  readonly #core: ClientCore
  readonly #timing: Timing
  #keeper: Keeper | undefined = undefined
  #granting = false
  #leader: Attempt | undefined = undefined
  /** A lease that was full, or seemed so: still good if no other can be had. */
  #spare: Keeper | undefined = undefined
  #queue: Attempt[] = []

  constructor(core: ClientCore, timing: Timing) {
    this.#core = core
    this.#timing = timing
  }

  /** Whether nothing would be lost by forgetting it. */
  get idle(): boolean {
    return !this.#granting && this.#keeper?.alive !== true
  }

  get ready(): Keeper | undefined {
    const keeper = this.#keeper
    return keeper !== undefined && keeper.lastState === 'held' ? keeper : undefined
  }

  admit(attempt: Attempt): void {
    const keeper = this.ready
    if (keeper !== undefined) {
      carryOut(this.#core, new ClaimErrand(this.#core, attempt, keeper))
      return
    }
    // A lapsed lease is left to those who hold under it; whoever comes now gets a fresh one.
    this.#keeper = undefined
    if (this.#granting) {
      attempt.stay()
      this.#queue.push(attempt)
    } else this.#grant(attempt)
  }

  admitElsewhere(attempt: Attempt, full: Keeper): void {
    if (this.#keeper === full) {
      this.#spare = full
      this.#keeper = undefined
    }
    this.admit(attempt)
  }

  granted(keeper: Keeper, answer: Granted): void {
    this.#granting = false
    this.#keeper = keeper
    this.#spare = undefined
    const leader = this.#leader
    this.#leader = undefined
    leader?.placed(keeper, answer)
    this.#admitQueue()
  }

  notFree(answer: Busy): void {
    this.#granting = false
    const leader = this.#leader
    this.#leader = undefined
    this.#backToSpare()
    // A lease without claims is never busy, so there is a leader.
    leader!.busy(answer)
    this.#grantForQueue()
  }

  notGranted(error: LeaseholdError): void {
    this.#granting = false
    const leader = this.#leader
    this.#leader = undefined
    this.#backToSpare()
    leader?.fail(error)
    if (error.outcome === 'refused' && leader !== undefined && !this.#core.closed) {
      this.#grantForQueue()
    } else {
      // It was not the leader's claim that was wrong: the others would fare no better.
      const queue = this.#queue
      this.#queue = []
      for (const attempt of queue) attempt.fail(error)
    }
  }

  #grant(leader: Attempt | undefined): void {
    this.#granting = true
    this.#leader = leader
    leader?.stay()
    const request = leader === undefined ? {} : { claims: leader.claims, ifFree: leader.ifFree }
    carryOut(this.#core, new GrantErrand(this.#core, this, this.#timing, true, request))
  }

  #backToSpare(): void {
    this.#keeper ??= this.#spare
    this.#spare = undefined
  }

  /** The first claim made no lease. With several waiting, a lease without a claim serves them all. */
  #grantForQueue(): void {
    this.#queue = this.#queue.filter((attempt) => !attempt.over)
    if (this.#keeper !== undefined) this.#admitQueue()
    else if (this.#queue.length === 1) this.#grant(this.#queue.pop())
    else if (this.#queue.length > 1) this.#grant(undefined)
  }

  #admitQueue(): void {
    const queue = this.#queue
    this.#queue = []
    for (const attempt of queue) if (!attempt.over) this.admit(attempt)
  }
}

/** A lease for one attempt alone: it ends when what is held under it does. */
export class OwnLease implements LeaseSource, Grantee {
  readonly #core: ClientCore
  readonly #timing: Timing
  readonly #parent: LeaseId | undefined
  readonly #labels: Labels | undefined
  #attempt: Attempt | undefined = undefined

  constructor(
    core: ClientCore,
    timing: Timing,
    parent: LeaseId | undefined,
    labels: Labels | undefined,
  ) {
    this.#core = core
    this.#timing = timing
    this.#parent = parent
    this.#labels = labels
  }

  get ready(): undefined {
    return undefined
  }

  admit(attempt: Attempt): void {
    this.#attempt = attempt
    attempt.stay()
    const { claims, ifFree } = attempt
    const { maxHold } = this.#timing
    const request = {
      claims,
      ifFree,
      parent: this.#parent,
      labels: this.#labels,
      // What holds at once or not at all never stands in line, so the store can count from here.
      maxLife: ifFree && maxHold < Infinity ? maxHold : undefined,
    }
    carryOut(this.#core, new GrantErrand(this.#core, this, this.#timing, false, request))
  }

  /** A new lease has no claims, so what was passed is another limit: the next answer tells which. */
  admitElsewhere(attempt: Attempt): void {
    this.admit(attempt)
  }

  granted(keeper: Keeper, answer: Granted): void {
    this.#attempt!.placed(keeper, answer)
  }

  notFree(answer: Busy): void {
    this.#attempt!.busy(answer)
  }

  notGranted(error: LeaseholdError): void {
    this.#attempt!.fail(error)
  }
}
