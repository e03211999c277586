/**
 * Everything has a limit. A call that would exceed one is refused with `limit-exceeded`, or with
 * `invalid-argument` if the value itself is invalid. The message names the limit.
 */
export interface Limits {
  /** The minimum and maximum of a finite ttl, in milliseconds. `Infinity` is always allowed. */
  readonly ttlMin: number
  readonly ttlMax: number
  /** UTF-16 code units in a key, a holder's name, a label's name or value, a request id, a reason. */
  readonly keyLength: number
  readonly nameLength: number
  /** Labels on one lease. */
  readonly labels: number
  /** Bytes of UTF-8 in the value of a claim. */
  readonly valueBytes: number
  /** Keys in one call of `claim` or `grant`. */
  readonly keysPerClaim: number
  /** Claims that one lease may have at a time. */
  readonly claimsPerLease: number
  /** Claims on one key at a time, holding and waiting. */
  readonly claimsPerKey: number
  /** Leases directly under one parent, and how deep leases may be nested. */
  readonly childrenPerLease: number
  readonly leaseDepth: number
  /** Leases in the store. */
  readonly leases: number
  /** Leases in one call of `renew`. */
  readonly renewBatch: number
  /** Entries in one answer of `read`, and claims that one `revoke` by prefix removes. */
  readonly page: number
  /** Events kept so that watches can resume. */
  readonly events: number
  /** Past tenures kept per key, and in total. */
  readonly historyPerKey: number
  readonly history: number
  /** Keys without claims that are kept for their history. */
  readonly idleKeys: number
  /** Requests whose answers are kept, so that a repeated request gets the same answer. */
  readonly requests: number
  /** Ended leases whose end reason is kept. */
  readonly ended: number
}

export const DEFAULT_LIMITS: Limits = {
  ttlMin: 10,
  ttlMax: 10 * 365 * 86_400_000,
  keyLength: 512,
  nameLength: 256,
  labels: 32,
  valueBytes: 64 * 1024,
  keysPerClaim: 256,
  claimsPerLease: 10_000,
  claimsPerKey: 10_000,
  childrenPerLease: 10_000,
  leaseDepth: 8,
  leases: 20_000_000,
  renewBatch: 100_000,
  page: 10_000,
  events: 16_384,
  historyPerKey: 16,
  history: 65_536,
  idleKeys: 65_536,
  requests: 65_536,
  ended: 65_536,
}
