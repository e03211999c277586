import {
  invalid,
  isLeaseholdError,
  LeaseholdError,
  type LeaseId,
  type Revoked,
  show,
} from 'leasehold/port'
import type { Access, Admission } from '../access/index.ts'

/** What somebody at the dashboard does to what others hold. Each says why. */
export type Act =
  /** Ends a lease with all that is under it, at once. */
  | { readonly act: 'revoke'; readonly lease: LeaseId; readonly why: string }
  /** Takes one claim away; its lease lives on. */
  | {
      readonly act: 'take'
      readonly key: string
      readonly token: number
      readonly why: string
    }
  /** Gives a lease a last deadline, so many milliseconds away. */
  | {
      readonly act: 'break'
      readonly lease: LeaseId
      readonly after: number
      readonly why: string
    }
  /** Takes an instance out of discovery while it lives on, and puts it back. */
  | {
      readonly act: 'drain' | 'return'
      readonly service: string
      readonly instance: string
      readonly why: string
    }

/** What was done, and in whose name: an act that changes nothing fails. */
export interface Done {
  readonly by: string
  /** How many leases were ended or cut, and how many claims were taken, where it was that. */
  readonly leases?: number
  readonly claims?: number
}

/** Who has done it where nobody is known. */
const SOMEBODY = 'dashboard'
/** How a health result says that somebody, and no check, has found it. */
export const DRAINED = 'drained'
const NOTE_MAX = 200
/** How long a drain lasts on a store that cannot end it with the instance. */
const UNBOUND_TTL_MS = 24 * 60 * 60_000

/**
 * Carries out an act on the store as whoever asks may use it, so that every right is decided where
 * all are; and sees to it that the audit has it with its reason.
 */
export async function carryOut(access: Access, admission: Admission, act: Act): Promise<Done> {
  const { why } = act
  if (typeof why !== 'string' || why.trim() === '') {
    throw invalid('why is missing: say the reason, it is told to those concerned and written down')
  }
  const by = admission.isKnown ? admission.principal.name : SOMEBODY
  const { store } = admission
  if (act.act === 'take') {
    const { key, token } = act
    const { leases, claims } = await store.revoke({ target: { key, token }, by, why })
    if (claims === 0) throw noClaim(key, token)
    return { by, leases, claims }
  }
  // A store that knows who asks writes down by itself what is ended by force.
  const record = (outcome: string) => {
    if (admission.isKnown && (act.act === 'revoke' || act.act === 'break')) return
    const { act: action, why: _, ...target } = act
    access.record({ action, by, target, why, outcome })
  }
  try {
    const answer = await endOrDrain(admission, act, by)
    record('done')
    return { by, ...answer }
  } catch (error) {
    record(isLeaseholdError(error) ? error.code : 'unknown-outcome')
    throw error
  }
}

function endOrDrain(
  admission: Admission,
  act: Exclude<Act, { readonly act: 'take' }>,
  by: string,
): Promise<Partial<Revoked>> {
  const { store } = admission
  const { why } = act
  if (act.act === 'revoke') return store.revoke({ target: { lease: act.lease }, by, why })
  if (act.act === 'break') return breakLease(admission, act, by)
  const { service, instance } = act
  if (act.act === 'drain') return drain(admission, service, instance, by, why)
  return putBack(admission, service, instance, by, why)
}

async function breakLease(
  { store }: Admission,
  { lease, after, why }: Extract<Act, { readonly act: 'break' }>,
  by: string,
): Promise<Partial<Revoked>> {
  const answer = await store.revoke({ target: { lease }, by, why, after })
  if (answer.leases > 0) return answer
  throw invalid('it ends sooner already: a last deadline can be made earlier, never later')
}

/**
 * Drains an instance: writes on its health, as the newest result, that it is critical. What the
 * instance says of itself cannot undo that, since its own claim is another; and the result is under
 * the instance's lease, so that it is gone with it.
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

/** As much of a text as a note may have. Half a character at its end would make it no note at all. */
function cut(text: string): string {
  return text.slice(0, NOTE_MAX).toWellFormed()
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
    `${show(key)} is not claimed with the token ${token} any more: nothing was taken, look again`,
  )
}

function notThere(service: string, instance: string): LeaseholdError {
  return new LeaseholdError(
    'claim-not-found',
    `${show(`${service}/${instance}`)} is not registered, or not drained: look again`,
  )
}
