import { isIPv4 } from 'node:net'
import type { Clock } from 'leasehold/port'
import { addressBytes } from './address-bytes.ts'

const BYTES_PER_SECOND = 256 * 1024
const BURST_BYTES = 1024 * 1024
const NETWORKS_MAX = 10_000

interface Bucket {
  bytes: number
  at: number
}

/**
 * Limits how many bytes of large answers go to one network. Over UDP anybody can send a query in the
 * name of a victim, and the answer is longer than the query. A network over its budget gets short,
 * truncated answers: real clients then ask by TCP.
 */
export class AnswerBudget {
  readonly #clock: Clock
  readonly #buckets = new Map<string, Bucket>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether the network of this address may still get large answers. */
  allows(address: string): boolean {
    return this.#bucket(networkOf(address)).bytes > 0
  }

  /** Counts an answer that was sent. */
  spend(address: string, bytes: number): void {
    this.#bucket(networkOf(address)).bytes -= bytes
  }

  #bucket(network: string): Bucket {
    const now = this.#clock.now()
    const bucket = this.#buckets.get(network) ?? { bytes: BURST_BYTES, at: now }
    const gained = ((now - bucket.at) / 1000) * BYTES_PER_SECOND
    bucket.bytes = Math.min(BURST_BYTES, bucket.bytes + gained)
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

/** One owner usually has 256 IPv4 addresses, or a /56 of IPv6. */
function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:/, '').replace(/%.*$/, '')
  return addressBytes(plain)
    .slice(0, isIPv4(plain) ? 3 : 7)
    .join('.')
}
