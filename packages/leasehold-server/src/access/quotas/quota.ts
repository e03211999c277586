import { type Clock, formatDuration, LeaseholdError, show } from 'leasehold/port'

/** The limits of one principal. Without a value, only the store's limits apply. */
export interface Quota {
  /** The most leases. */
  readonly leases?: number | undefined
  /** The most claims, holding and waiting. */
  readonly claims?: number | undefined
  /** The most watches. */
  readonly watches?: number | undefined
  /** Average calls per second; a second's worth may come at once. */
  readonly callsPerSecond?: number | undefined
  /** Average request bytes per second; a second's worth may come at once. */
  readonly bytesPerSecond?: number | undefined
  /** The most bytes of one value. */
  readonly valueBytes?: number | undefined
  /** The shortest and the longest ttl, in milliseconds. */
  readonly ttlMin?: number | undefined
  readonly ttlMax?: number | undefined
}

export const QUOTA_NAMES = [
  'leases',
  'claims',
  'watches',
  'callsPerSecond',
  'bytesPerSecond',
  'valueBytes',
  'ttlMin',
  'ttlMax',
] as const satisfies readonly (keyof Quota)[]

/** The usage of one principal over all its connections to this server. */
export class Usage {
  leases = 0
  claims = 0
  watches = 0
  calls = 0
  refused = 0
  #tokens = Infinity
  #filledAt = 0
  /** Bytes that may arrive now. Below zero, requests must wait. */
  #bytes = Infinity
  #bytesAt = 0

  /** Counts a call, and refuses it if there are too many. */
  call(name: string, quota: Quota, clock: Clock): void {
    this.calls++
    const rate = quota.callsPerSecond
    if (rate === undefined) return
    const now = clock.now()
    const since = (now - this.#filledAt) / 1000
    this.#filledAt = now
    // A rate below one must still allow single calls.
    this.#tokens = Math.min(rate === 0 ? 0 : Math.max(1, rate), this.#tokens + since * rate)
    if (this.#tokens >= 1) {
      this.#tokens--
      return
    }
    this.refused++
    throw exceeded(name, `${rate} calls a second`, 'send fewer, or batch renewals')
  }

  /** Counts request bytes. Returns how many milliseconds they must wait. */
  payload({ bytesPerSecond: rate }: Quota, clock: Clock, bytes: number): number {
    if (rate === undefined) return 0
    const now = clock.now()
    this.#bytes = Math.min(rate, this.#bytes + ((now - this.#bytesAt) / 1000) * rate) - bytes
    this.#bytesAt = now
    return this.#bytes >= 0 ? 0 : (-this.#bytes / rate) * 1000
  }
}

export function exceeded(name: string, limit: string, fix: string): LeaseholdError {
  return new LeaseholdError('limit-exceeded', `${show(name)} may use at most ${limit}: ${fix}`)
}

export function checkTtl(name: string, { ttlMin, ttlMax }: Quota, ttl: number): void {
  if (ttlMin !== undefined && ttl < ttlMin) {
    throw exceeded(name, `ttls of ${formatDuration(ttlMin)} and more`, 'make it longer')
  }
  if (ttlMax !== undefined && ttl > ttlMax) {
    throw exceeded(name, `ttls up to ${formatDuration(ttlMax)}`, 'make it shorter')
  }
}

export function checkValue(name: string, { valueBytes }: Quota, value: string | undefined): void {
  if (valueBytes === undefined || value === undefined) return
  if (Buffer.byteLength(value) <= valueBytes) return
  throw exceeded(name, `${valueBytes} bytes of value`, 'make it shorter')
}
