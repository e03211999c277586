import {
  type End,
  isLeaseholdError,
  LeaseholdError,
  type LeaseId,
  type LeaseReading,
  type LeaseStore,
  type RevokeTarget,
  show,
} from 'leasehold/port'
import type { Principal } from './principal.ts'
import { allows, allowsKey, allowsOthers, allowsSomewhere, forbidden, type Verb } from './rights.ts'
import type { LeaseSecrets } from './secrets.ts'

/** More claims than a lease may have. */
const ALL_CLAIMS = 10_000

/** A lease that may be used. */
export interface Passed {
  readonly lease: LeaseId
  /** What was read of it; nothing if the caller may see all of it, whatever that is. */
  readonly reading?: LeaseReading | undefined
  /** Whether the caller showed its secret. */
  readonly isProven?: boolean
  /** Whether the caller must not learn who ended it and why. */
  readonly hidesReason: boolean
}

/** What is to be ended, by its plain id. */
export interface Ending {
  readonly target: RevokeTarget
  readonly passed?: Passed | undefined
}

/**
 * Decides who may use a lease in which way: whoever shows its secret, or has the right to all of
 * its keys. A lease without claims has no keys, so that takes the right to all keys.
 */
export class LeaseGate {
  readonly #store: LeaseStore
  readonly #secrets: LeaseSecrets
  readonly #who: Principal

  constructor(store: LeaseStore, secrets: LeaseSecrets, who: Principal) {
    this.#store = store
    this.#secrets = secrets
    this.#who = who
  }

  /** The lease, if the caller may use it in this way; otherwise refused with `forbidden`. */
  async pass(given: LeaseId, verb: Verb): Promise<Passed> {
    const { lease, proven } = this.#secrets.open(given)
    const { rights } = this.#who
    if (proven || allows(rights, verb, '')) return { lease, isProven: proven, hidesReason: false }
    // Whoever may use no lease in this way must not learn from the answer which leases exist.
    if (!allowsSomewhere(rights, verb)) throw notYours(lease, verb)
    const reading = await this.#store.read({ lease, limit: ALL_CLAIMS })
    if (!this.#covers(reading, verb)) throw notYours(lease, verb)
    // Nobody can tell which keys a lease had that ended before it was looked at.
    const hidesReason = reading.lease === undefined && !allowsOthers(rights, verb, '')
    return { lease, reading, hidesReason }
  }

  /** What one holds oneself may be ended without a right or a reason. */
  ownTarget(target: RevokeTarget): Ending | undefined {
    const given = 'lease' in target ? target.lease : 'parent' in target ? target.parent : undefined
    if (given === undefined) return undefined
    const { lease, proven } = this.#secrets.open(given)
    return proven ? { target: byLease(target, lease) } : undefined
  }

  /** What others hold, if the caller may end it; otherwise refused with `forbidden`. */
  async mayEnd(target: RevokeTarget): Promise<Ending> {
    const { name, rights } = this.#who
    if ('key' in target) {
      if (!allowsKey(rights, 'admin', target.key)) throw forbidden(name, 'admin', target.key)
      return { target }
    }
    if ('prefix' in target) {
      if (!allows(rights, 'admin', target.prefix)) throw forbidden(name, 'admin', target.prefix)
      return { target }
    }
    const passed = await this.pass('lease' in target ? target.lease : target.parent, 'admin')
    return { target: byLease(target, passed.lease), passed }
  }

  /** Whether all that a reading of a lease shows may be used in this way. */
  #covers({ lease, claims }: LeaseReading, verb: Verb): boolean {
    const { rights } = this.#who
    if (lease === undefined) return true
    if (claims.length !== lease.claims) return false
    // To end a lease is to end the leases under it, whose keys are not known here.
    if (verb === 'admin' && lease.children > 0) return false
    if (claims.length === 0) return allowsOthers(rights, verb, '')
    return claims.every(({ key }) => allowsKey(rights, verb, key))
  }
}

function byLease(target: RevokeTarget, lease: LeaseId): RevokeTarget {
  return 'lease' in target ? { lease } : { parent: lease }
}

function notYours(lease: LeaseId, verb: Verb): LeaseholdError {
  return new LeaseholdError(
    'forbidden',
    `lease ${show(lease)} is not yours: give its id as it was granted, with its secret, or have the right to ${verb} all of its keys`,
  )
}

/** What is told of an end to those who must not learn who brought it about and why. */
export function withoutReason(end: End | undefined): End | undefined {
  return end && { reason: end.reason }
}

/** A call on a lease. Its refusal says why the lease ended only to those who may know. */
export function onLease<Answer>(
  { lease, hidesReason }: Passed,
  call: Promise<Answer>,
): Promise<Answer> {
  if (!hidesReason) return call
  return call.catch((error: unknown) => {
    if (!isLeaseholdError(error, 'lease-ended')) throw error
    const { reason } = error
    const message = `lease ${show(lease)} has ended: ${reason}. Take a new one.`
    throw new LeaseholdError('lease-ended', message, { reason })
  })
}
