import { LeaseholdError, type LeaseStore, show } from 'leasehold/port'

/** Marks a health result as a drain by a person, not a check. */
export const DRAINED = 'drained'
const NOTE_MAX = 200
/** How long a drain lasts on a store without child leases. */
const UNBOUND_TTL_MS = 24 * 60 * 60_000

/** An instance of a service, and who drains or returns it for which reason. */
export interface DrainRequest {
  readonly service: string
  readonly instance: string
  readonly by: string
  readonly why: string
}

/**
 * Takes a running instance out of discovery, by adding a critical health result. The instance cannot
 * overwrite it, because its own reports use another claim. The result is under the instance's lease
 * and ends with it.
 */
export async function drain(
  store: LeaseStore,
  { service, instance, by, why }: DrainRequest,
): Promise<void> {
  const { claims } = await store.read({ key: `services/${service}/${instance}`, limit: 1 })
  const [claim] = claims
  if (claim === undefined) throw notThere(service, instance, 'registered')
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
}

/** Ends all drains of an instance. Returns how many there were. */
export async function returnDrained(
  store: LeaseStore,
  { service, instance, by, why }: DrainRequest,
): Promise<number> {
  const { claims } = await store.read({ key: `health/${service}/${instance}` })
  const drains = claims.filter(({ value }) => isDrain(value))
  if (drains.length === 0) throw notThere(service, instance, 'drained')
  for (const { key, token } of drains) await store.revoke({ target: { key, token }, by, why })
  return drains.length
}

/** Cuts a note to its maximum length. A cut surrogate pair would make it invalid. */
function cut(note: string): string {
  return note.slice(0, NOTE_MAX).toWellFormed()
}

function isDrain(value: string | undefined): boolean {
  try {
    return DRAINED in JSON.parse(value ?? '')
  } catch {
    return false
  }
}

function notThere(
  service: string,
  instance: string,
  what: 'registered' | 'drained',
): LeaseholdError {
  return new LeaseholdError('claim-not-found', `${show(`${service}/${instance}`)} is not ${what}`)
}
