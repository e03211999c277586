import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { LeaseId } from 'leasehold/port'

/** Stands between a lease's public id and its secret. No store uses it in its ids. */
const SEPARATOR = '~'
/** 128 bits, in base64url. */
const SECRET_LENGTH = 22

/**
 * Lease secrets: whoever was granted a lease gets its id with a secret behind it, and only with that
 * secret (or a right to all of the lease's keys) can it be renewed, used and released.
 *
 * A secret is computed from the id and the server's key, so nothing is stored, and several servers
 * that share a key know each other's secrets.
 */
export class LeaseSecrets {
  readonly #key: Buffer

  constructor(key: Buffer) {
    this.#key = key
  }

  /** The id as its holder gets it. */
  sign(lease: LeaseId): LeaseId {
    return `${lease}${SEPARATOR}${this.#secretOf(lease)}`
  }

  /** The public id, and whether it came with its secret. */
  open(given: LeaseId): { readonly lease: LeaseId; readonly proven: boolean } {
    const at = given.lastIndexOf(SEPARATOR)
    if (at < 0) return { lease: given, proven: false }
    const lease = given.slice(0, at)
    return { lease, proven: sameText(given.slice(at + 1), this.#secretOf(lease)) }
  }

  #secretOf(lease: LeaseId): string {
    return createHmac('sha256', this.#key).update(lease).digest('base64url').slice(0, SECRET_LENGTH)
  }
}

/** Whether two texts are the same, in a time that does not tell how much of them is. */
export function sameText(a: string, b: string): boolean {
  return timingSafeEqual(hash(a), hash(b))
}

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
