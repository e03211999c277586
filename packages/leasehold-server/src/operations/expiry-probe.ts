import type { Lease } from 'leasehold/port'

/** The shortest ttl of a lease that measures expiry lag. */
export const PROBE_TTL_MS = 1000
const LABEL = 'expiry-probe'
/** The labels of such a lease, so that nobody counts it as a user's. */
export const PROBE_LABELS = { [LABEL]: 'measures how late leases expire' }

export function isProbe({ labels }: Lease): boolean {
  return LABEL in labels
}
