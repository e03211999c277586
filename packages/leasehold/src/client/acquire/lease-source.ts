import type {
  Busy,
  Granted,
  GrantRequest,
  Labels,
  LeaseholdError,
  LeaseId,
} from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import { KeptLease, type Timing } from '../leases/index.ts'
import { closedError, type Outcome, revokeLease, StoreCall } from '../store-calls/index.ts'
import type { Acquisition, Result } from './acquire.ts'

/** What belongs to a lease that is not shared: it serves one acquisition, and ends with it. */
export interface OwnLease {
  readonly parent: LeaseId | undefined
  readonly labels: Labels | undefined
}

/**
 * Where acquisitions with the same timing get their lease. The first one asks for the lease and its
 * claim in one call. Those that come meanwhile wait for that lease, so that a burst makes one grant
 * and not many.
 */
export class LeaseSource {
  readonly #core: ClientCore
  readonly #timing: Timing
  readonly #tied: boolean | undefined
  readonly #own: OwnLease | undefined
  #lease: KeptLease | undefined = undefined
  #isGranting = false
  /** A lease that was full, or seemed so. It is still good if the store grants no other. */
  #spare: KeptLease | undefined = undefined
  #queue: Acquisition[] = []

  constructor(core: ClientCore, timing: Timing, tied?: boolean, own?: OwnLease) {
    this.#core = core
    this.#timing = timing
    this.#tied = tied
    this.#own = own
  }

  /** Whether nothing would be lost by forgetting it. */
  get isIdle(): boolean {
    return !this.#isGranting && this.#lease?.alive !== true
  }

  /** Lets it claim under the lease that there is, or gets one. */
  admit(acquisition: Acquisition): Promise<Result> | undefined {
    if (this.#lease?.lastState === 'held') return acquisition.claimUnder(this.#lease)
    // A lapsed lease is left to those that hold under it; others get a new one.
    this.#lease = undefined
    acquisition.keepAlive()
    if (!this.#isGranting) return this.#grant(acquisition)
    this.#queue.push(acquisition)
    return acquisition.later()
  }

  /** The same, if this lease had no room for the claims. */
  admitElsewhere(acquisition: Acquisition, full: KeptLease): Promise<Result> | undefined {
    if (this.#lease === full) {
      this.#spare = full
      this.#lease = undefined
    }
    return this.admit(acquisition)
  }

  #grant(first: Acquisition | undefined): Promise<Result> {
    this.#isGranting = true
    return new GrantCall(this.#core, this, first, this.#timing, this.#tied, this.#own).start()
  }

  onGranted(lease: KeptLease, answer: Granted, first: Acquisition | undefined): Outcome<Result> {
    this.#isGranting = false
    this.#lease = lease
    this.#spare = undefined
    const outcome = first?.onClaimed(lease, answer)
    this.#admitQueue()
    return outcome
  }

  /** A lease without claims is never busy, so there is a first acquisition. */
  onBusy(answer: Busy, first: Acquisition): Outcome<Result> {
    this.#isGranting = false
    this.#backToSpare()
    const outcome = first.onBusy(answer)
    this.#grantForQueue()
    return outcome
  }

  onNotGranted(error: LeaseholdError, first: Acquisition | undefined): Outcome<Result> {
    this.#isGranting = false
    this.#backToSpare()
    const outcome = first?.fail(error)
    if (error.outcome === 'refused' && first !== undefined && !this.#core.closed) {
      this.#grantForQueue()
    } else {
      // The fault was not in the first one's claims, so the others would fail too.
      const queue = this.#queue
      this.#queue = []
      for (const acquisition of queue) acquisition.fail(error)
    }
    return outcome
  }

  #backToSpare(): void {
    this.#lease ??= this.#spare
    this.#spare = undefined
  }

  /** The first claim got no lease. If several wait, a lease without claims serves them all. */
  #grantForQueue(): void {
    this.#queue = this.#queue.filter((acquisition) => !acquisition.isOver)
    if (this.#lease !== undefined) this.#admitQueue()
    else if (this.#queue.length === 1) void this.#grant(this.#queue.pop())
    else if (this.#queue.length > 1) void this.#grant(undefined)
  }

  #admitQueue(): void {
    const queue = this.#queue
    this.#queue = []
    for (const acquisition of queue) if (!acquisition.isOver) void this.admit(acquisition)
  }
}

/** Asks for a new lease. Its deadline counts from the first time that this was sent. */
class GrantCall extends StoreCall<Granted | Busy, Result> {
  readonly pointless = false
  readonly #source: LeaseSource
  readonly #first: Acquisition | undefined
  readonly #timing: Timing
  readonly #isShared: boolean
  readonly #request: GrantRequest
  #firstSentAt: number | undefined = undefined
  #isLate = false

  constructor(
    core: ClientCore,
    source: LeaseSource,
    first: Acquisition | undefined,
    timing: Timing,
    tied: boolean | undefined,
    own: OwnLease | undefined,
  ) {
    super(core)
    this.#source = source
    this.#first = first
    this.#timing = timing
    this.#isShared = own === undefined
    const { ttl, grace, maxHold } = timing
    this.#request = {
      holder: core.settings.holder,
      ttl,
      grace,
      claims: first?.claims,
      ifFree: first?.ifFree,
      parent: own?.parent,
      labels: own?.labels,
      tied,
      // A claim that holds at once or not at all never waits, so the store can count from here.
      maxLife: first?.ifFree && maxHold < Infinity ? maxHold : undefined,
      request: core.requestId(),
    }
    core.begin()
  }

  get repeatable(): boolean {
    return this.#request.request !== undefined
  }

  override get hasChosenLimit(): boolean {
    return this.#first?.hasChosenLimit === true
  }

  send(): Promise<Granted | Busy> {
    this.#firstSentAt ??= this.core.timers.now()
    return this.core.store.grant(this.#request)
  }

  answered(answer: Granted | Busy): Outcome<Result> {
    this.core.end()
    if (answer.outcome === 'busy') {
      return this.#isLate ? undefined : this.#source.onBusy(answer, this.#first!)
    }
    if (this.#isLate || this.core.closed) {
      // The caller knows, or learns now, that it does not get the lease.
      revokeLease(this.core, answer.lease, 'granted too late')
      return this.#isLate ? undefined : this.#source.onNotGranted(closedError(), this.#first)
    }
    const sentAt = this.#firstSentAt!
    const { maxLife } = this.#request
    const lease = new KeptLease(this.core, answer.lease, this.#timing, sentAt, this.#isShared)
    if (maxLife !== undefined) lease.cap(sentAt, maxLife, undefined)
    return this.#source.onGranted(lease, answer, this.#first)
  }

  failed(error: LeaseholdError): Outcome<Result> {
    this.core.end()
    return this.#isLate ? undefined : this.#source.onNotGranted(error, this.#first)
  }

  overdue(error: LeaseholdError): Outcome<Result> {
    this.#isLate = true
    return this.#source.onNotGranted(error, this.#first)
  }
}
