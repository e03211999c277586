import { isIPv4 } from 'node:net'
import type { Clock } from 'leasehold/port'
import { addressBytes } from './address-bytes.ts'

/** The most bytes of an answer. */
const LARGE = 4096
/** What every client of DNS accepts, and much less to amplify. */
const SHORT = 512
const LARGE_PER_SECOND = 256 * 1024
const ALL_PER_SECOND = 2 * 1024 * 1024
/** How much may be sent at once, in seconds of the budget. */
const BURST_SECONDS = 4
const NETWORKS_MAX = 10_000

interface Bucket {
  /** What is left of the budget for large answers, and of that for all. */
  large: number
  all: number
  at: number
}

/**
 * Limits how many bytes go to one network over UDP. Anybody can send a query in the name of a victim,
 * and the answer is longer than the query. A network over its first budget gets short, truncated
 * answers: real clients then ask by TCP. A network over its second budget gets none.
 */
export class AnswerBudget {
  readonly #clock: Clock
  readonly #buckets = new Map<string, Bucket>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The most bytes of an answer to this address now; 0 for no answer. */
  limitFor(address: string): number {
    const { large, all } = this.#bucket(networkOf(address))
    if (all <= 0) return 0
    return large > 0 ? LARGE : SHORT
  }

  /** Counts an answer that was sent. */
  spend(address: string, bytes: number): void {
    const bucket = this.#bucket(networkOf(address))
    bucket.all -= bytes
    if (bytes > SHORT) bucket.large -= bytes
  }

  #bucket(network: string): Bucket {
    const now = this.#clock.now()
    const bucket = this.#buckets.get(network) ?? { large: Infinity, all: Infinity, at: now }
    const seconds = (now - bucket.at) / 1000
    bucket.large = refilled(bucket.large, LARGE_PER_SECOND, seconds)
    bucket.all = refilled(bucket.all, ALL_PER_SECOND, seconds)
    bucket.at = now
    // The network that was silent for longest is first.
    this.#buckets.delete(network)
    this.#buckets.set(network, bucket)
    if (this.#buckets.size > NETWORKS_MAX) {
      this.#buckets.delete(this.#buckets.keys().next().value!)
    }
    return bucket
  }
}

function refilled(left: number, perSecond: number, seconds: number): number {
  return Math.min(perSecond * BURST_SECONDS, left + perSecond * seconds)
}

/** One owner usually has 256 IPv4 addresses, or a /56 of IPv6. */
function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:/, '').replace(/%.*$/, '')
  return addressBytes(plain)
    .slice(0, isIPv4(plain) ? 3 : 7)
    .join('.')
}
