import {
  invalid,
  isLeaseholdError,
  LeaseholdError,
  type LeaseId,
  type Random,
  type Revoked,
  show,
} from 'leasehold/port'
import type { Access, Admission } from '../access/index.ts'
import { askBack, noteOf } from '../agents/index.ts'
import { drain, returnDrained } from '../registry/drain.ts'

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
  /** Asks the agent whose hold has this claim to give it back. */
  | {
      readonly action: 'ask'
      readonly key: string
      readonly token: number
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

/**
 * Performs an action through the principal's own store, which checks its rights, and records it in
 * the audit log with its reason.
 */
export async function carryOut(
  access: Access,
  admission: Admission,
  action: AdminAction,
  random: Random,
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
    const answer =
      action.action === 'ask'
        ? await ask(admission, action, by, random)
        : await endOrDrain(admission, action, by)
    record('done')
    return { by, ...answer }
  } catch (error) {
    record(isLeaseholdError(error) ? error.code : 'unknown-outcome')
    throw error
  }
}

function endOrDrain(
  admission: Admission,
  action: Exclude<AdminAction, { readonly action: 'take' | 'ask' }>,
  by: string,
): Promise<Partial<Revoked>> {
  const { store } = admission
  const { why } = action
  if (action.action === 'revoke') return store.revoke({ target: { lease: action.lease }, by, why })
  if (action.action === 'break') return breakLease(admission, action, by)
  const { service, instance } = action
  const request = { service, instance, by, why }
  if (action.action === 'drain') return drain(store, request).then(() => ({}))
  return returnDrained(store, request).then((claims) => ({ claims }))
}

async function ask(
  { store }: Admission,
  { key, token, why }: Extract<AdminAction, { readonly action: 'ask' }>,
  by: string,
  random: Random,
): Promise<Partial<Revoked>> {
  const { claims } = await store.read({ key })
  const claim = claims.find((it) => it.token === token)
  if (claim === undefined) throw noClaim(key, token, 'nobody was asked')
  const ref = noteOf(claim)?.ref
  if (ref === undefined) {
    throw invalid(`${show(claim.holder)} is not an agent: it reads no requests. Break its lease`)
  }
  await askBack(store, random, { ref, by, why })
  return {}
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

function noClaim(key: string, token: number, effect = 'nothing was revoked'): LeaseholdError {
  return new LeaseholdError(
    'claim-not-found',
    `${show(key)} is no longer claimed with the fencing token ${token}: ${effect}`,
  )
}
