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
import type { Principal } from '../identity/principal.ts'
import {
  allows,
  allowsKey,
  allowsOthers,
  allowsSomewhere,
  forbidden,
  type Verb,
} from '../rights.ts'
import type { LeaseSecrets } from './lease-secrets.ts'

/** More than the most claims of a lease. */
const ALL_CLAIMS = 10_000

/** A lease that the caller may use. */
export interface AllowedLease {
  readonly lease: LeaseId
  /** The lease as it was read; `undefined` if the caller may see everything. */
  readonly reading?: LeaseReading | undefined
  /** Whether the caller has its secret. */
  readonly isProven?: boolean
  /** Whether to hide from the caller who ended it and why. */
  readonly hidesReason: boolean
}

/** What the caller may end, by its plain id. */
export interface AllowedTarget {
  readonly target: RevokeTarget
  readonly passed?: AllowedLease | undefined
}

/**
 * Decides whether a principal may use a lease: with its secret, or with the right to all its keys. A
 * lease without claims has no keys and needs the right to all keys.
 */
export class LeaseAccess {
  readonly #store: LeaseStore
  readonly #secrets: LeaseSecrets
  readonly #principal: Principal

  constructor(store: LeaseStore, secrets: LeaseSecrets, principal: Principal) {
    this.#store = store
    this.#secrets = secrets
    this.#principal = principal
  }

  /** The lease, if the caller may use it with this verb. Throws `forbidden` otherwise. */
  async allow(given: LeaseId, verb: Verb): Promise<AllowedLease> {
    const { lease, proven } = this.#secrets.open(given)
    const { rights } = this.#principal
    if (proven || allows(rights, verb, '')) return { lease, isProven: proven, hidesReason: false }
    // A caller without this right on any lease must not learn which leases exist.
    if (!allowsSomewhere(rights, verb)) throw notYours(lease, verb)
    const reading = await this.#store.read({ lease, limit: ALL_CLAIMS })
    if (!this.#covers(reading, verb)) throw notYours(lease, verb)
    // The keys of an ended lease are unknown.
    const hidesReason = reading.lease === undefined && !allowsOthers(rights, verb, '')
    return { lease, reading, hidesReason }
  }

  /** The caller's own target, which it may end without a right or a reason. */
  ownTarget(target: RevokeTarget): AllowedTarget | undefined {
    const given = 'lease' in target ? target.lease : 'parent' in target ? target.parent : undefined
    if (given === undefined) return undefined
    const { lease, proven } = this.#secrets.open(given)
    return proven ? { target: byLease(target, lease) } : undefined
  }

  /** Another holder's target, if the caller may end it. Throws `forbidden` otherwise. */
  async mayEnd(target: RevokeTarget): Promise<AllowedTarget> {
    const { name, rights } = this.#principal
    if ('key' in target) {
      if (!allowsKey(rights, 'admin', target.key)) throw forbidden(name, 'admin', target.key)
      return { target }
    }
    if ('prefix' in target) {
      if (!allows(rights, 'admin', target.prefix)) throw forbidden(name, 'admin', target.prefix)
      return { target }
    }
    const passed = await this.allow('lease' in target ? target.lease : target.parent, 'admin')
    return { target: byLease(target, passed.lease), passed }
  }

  /** Whether the rights cover everything that was read of a lease. */
  #covers({ lease, claims }: LeaseReading, verb: Verb): boolean {
    const { rights } = this.#principal
    if (lease === undefined) return true
    if (claims.length !== lease.claims) return false
    // Ending a lease also ends its child leases, whose keys are unknown here.
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
    `lease ${show(lease)} is not yours: use its id with the secret, as it was granted, or an access token with the right to ${verb} all its keys`,
  )
}

/** Removes who ended a lease and why. */
export function withoutReason(end: End | undefined): End | undefined {
  return end && { reason: end.reason }
}

/** Hides in a refusal why the lease ended, if the caller must not know. */
export function onLease<Answer>(
  { lease, hidesReason }: AllowedLease,
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
