import {
  invalid,
  isLeaseholdError,
  LeaseholdError,
  type LeaseId,
  type Revoked,
  show,
} from 'leasehold/port'
import type { Access, Admission } from '../access/index.ts'

/** A forced change from the dashboard. Each needs a reason. */
export type AdminAction =
  /** Ends a lease with everything under it, at once. */
  | { readonly action: 'revoke'; readonly lease: LeaseId; readonly why: string }
  /** Revokes one claim; its lease stays. */
  | {
      readonly action: 'take'
      readonly key: string
      readonly token: number
      readonly why: string
    }
  /** Ends a lease after this many milliseconds at the latest. */
  | {
      readonly action: 'break'
      readonly lease: LeaseId
      readonly after: number
      readonly why: string
    }
  /** Removes a running instance from discovery, or returns it. */
  | {
      readonly action: 'drain' | 'return'
      readonly service: string
      readonly instance: string
      readonly why: string
    }

/** The result of an action. An action that changes nothing fails. */
export interface ActionResult {
  readonly by: string
  /** The ended or broken leases and the revoked claims, if any. */
  readonly leases?: number
  readonly claims?: number
}

/** The author of an action on a server without access tokens. */
const ANONYMOUS = 'dashboard'
/** Marks a health result as a drain by a person, not a check. */
export const DRAINED = 'drained'
const NOTE_MAX = 200
/** How long a drain lasts on a store without child leases. */
const UNBOUND_TTL_MS = 24 * 60 * 60_000

/**
 * Performs an action through the principal's own store, which checks its rights, and records it in
 * the audit log with its reason.
 */
export async function carryOut(
  access: Access,
  admission: Admission,
  action: AdminAction,
): Promise<ActionResult> {
  const { why } = action
  if (typeof why !== 'string' || why.trim() === '') {
    throw invalid('why is missing: give a reason; the holders and the audit log show it')
  }
  const by = admission.isKnown ? admission.principal.name : ANONYMOUS
  const { store } = admission
  if (action.action === 'take') {
    const { key, token } = action
    const { leases, claims } = await store.revoke({ target: { key, token }, by, why })
    if (claims === 0) throw noClaim(key, token)
    return { by, leases, claims }
  }
  // The store of a known principal records forced endings itself.
  const record = (outcome: string) => {
    if (admission.isKnown && (action.action === 'revoke' || action.action === 'break')) return
    const { action: name, why: _, ...target } = action
    access.record({ action: name, by, target, why, outcome })
  }
  try {
    const answer = await endOrDrain(admission, action, by)
    record('done')
    return { by, ...answer }
  } catch (error) {
    record(isLeaseholdError(error) ? error.code : 'unknown-outcome')
    throw error
  }
}

function endOrDrain(
  admission: Admission,
  action: Exclude<AdminAction, { readonly action: 'take' }>,
  by: string,
): Promise<Partial<Revoked>> {
  const { store } = admission
  const { why } = action
  if (action.action === 'revoke') return store.revoke({ target: { lease: action.lease }, by, why })
  if (action.action === 'break') return breakLease(admission, action, by)
  const { service, instance } = action
  if (action.action === 'drain') return drain(admission, service, instance, by, why)
  return putBack(admission, service, instance, by, why)
}

async function breakLease(
  { store }: Admission,
  { lease, after, why }: Extract<AdminAction, { readonly action: 'break' }>,
  by: string,
): Promise<Partial<Revoked>> {
  const answer = await store.revoke({ target: { lease }, by, why, after })
  if (answer.leases > 0) return answer
  throw invalid('the lease already ends sooner: a final deadline can only be moved earlier')
}

/**
 * Drains an instance by adding a critical health result. The instance cannot overwrite it, because
 * its own reports use another claim. The result is under the instance's lease and ends with it.
 */
async function drain(
  { store }: Admission,
  service: string,
  instance: string,
  by: string,
  why: string,
): Promise<Partial<Revoked>> {
  const { claims } = await store.read({ key: `services/${service}/${instance}`, limit: 1 })
  const [claim] = claims
  if (claim === undefined) throw notThere(service, instance)
  const key = `health/${service}/${instance}`
  const note = cut(`drained by ${by}: ${why}`.replace(/\p{Cc}+/gu, ' '))
  const value = JSON.stringify({ status: 'critical', note, of: claim.token, [DRAINED]: by })
  const bound = store.guarantees.childLeases
    ? { parent: claim.lease, ttl: Infinity }
    : { ttl: Math.min(UNBOUND_TTL_MS, store.guarantees.ttl.max) }
  await store.grant({
    holder: by,
    ...bound,
    labels: { drains: cut(`${service}/${instance}`) },
    claims: [{ key, mode: 'shared', value }],
  })
  return {}
}

/** Cuts a note to its maximum length. A cut surrogate pair would make it invalid. */
function cut(note: string): string {
  return note.slice(0, NOTE_MAX).toWellFormed()
}

async function putBack(
  { store }: Admission,
  service: string,
  instance: string,
  by: string,
  why: string,
): Promise<Partial<Revoked>> {
  const { claims } = await store.read({ key: `health/${service}/${instance}` })
  const drains = claims.filter(({ value }) => isDrain(value))
  if (drains.length === 0) throw notThere(service, instance)
  for (const { key, token } of drains) await store.revoke({ target: { key, token }, by, why })
  return { claims: drains.length }
}

function isDrain(value: string | undefined): boolean {
  try {
    return DRAINED in JSON.parse(value ?? '')
  } catch {
    return false
  }
}

function noClaim(key: string, token: number): LeaseholdError {
  return new LeaseholdError(
    'claim-not-found',
    `${show(key)} is no longer claimed with the fencing token ${token}: nothing was revoked`,
  )
}

function notThere(service: string, instance: string): LeaseholdError {
  return new LeaseholdError(
    'claim-not-found',
    `${show(`${service}/${instance}`)} is not registered or not drained`,
  )
}
