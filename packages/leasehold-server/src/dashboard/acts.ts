import { invalid, isLeaseholdError, LeaseholdError, type LeaseId, show } from 'leasehold/port'
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
export async function carryOut(access: Access, admission: Admission, act: Act): Promise<unknown> {
  const { why } = act
  if (typeof why !== 'string' || why.trim() === '') {
    throw invalid('why is missing: say the reason, it is told to those concerned and written down')
  }
  const by = admission.isKnown ? admission.principal.name : SOMEBODY
  const { store } = admission
  if (act.act === 'take') {
    const { key, token } = act
    return store.revoke({ target: { key, token }, by, why })
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
    return answer
  } catch (error) {
    record(isLeaseholdError(error) ? error.code : 'unknown-outcome')
    throw error
  }
}

function endOrDrain(
  admission: Admission,
  act: Exclude<Act, { readonly act: 'take' }>,
  by: string,
): Promise<unknown> {
  const { store } = admission
  const { why } = act
  if (act.act === 'revoke') return store.revoke({ target: { lease: act.lease }, by, why })
  if (act.act === 'break') {
    return store.revoke({ target: { lease: act.lease }, by, why, after: act.after })
  }
  const { service, instance } = act
  if (act.act === 'drain') return drain(admission, service, instance, by, why)
  return putBack(admission, service, instance, by, why)
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
): Promise<unknown> {
  const { claims } = await store.read({ key: `services/${service}/${instance}`, limit: 1 })
  const [claim] = claims
  if (claim === undefined) throw notThere(service, instance)
  const key = `health/${service}/${instance}`
  const note = `drained by ${by}: ${why}`.replace(/\p{Cc}+/gu, ' ').slice(0, NOTE_MAX)
  const value = JSON.stringify({ status: 'critical', note, of: claim.token, [DRAINED]: by })
  const bound = store.guarantees.childLeases
    ? { parent: claim.lease, ttl: Infinity }
    : { ttl: Math.min(UNBOUND_TTL_MS, store.guarantees.ttl.max) }
  const granted = await store.grant({
    holder: by,
    ...bound,
    labels: { drains: `${service}/${instance}`.slice(0, NOTE_MAX) },
    claims: [{ key, mode: 'shared', value }],
  })
  return { drained: granted.outcome === 'granted' }
}

async function putBack(
  { store }: Admission,
  service: string,
  instance: string,
  by: string,
  why: string,
): Promise<unknown> {
  const { claims } = await store.read({ key: `health/${service}/${instance}` })
  const drains = claims.filter(({ value }) => isDrain(value))
  if (drains.length === 0) throw notThere(service, instance)
  for (const { key, token } of drains) await store.revoke({ target: { key, token }, by, why })
  return { returned: true }
}

function isDrain(value: string | undefined): boolean {
  try {
    return DRAINED in JSON.parse(value ?? '')
  } catch {
    return false
  }
}

function notThere(service: string, instance: string): LeaseholdError {
  return new LeaseholdError(
    'claim-not-found',
    `${show(`${service}/${instance}`)} is not registered, or not drained: look again`,
  )
}
