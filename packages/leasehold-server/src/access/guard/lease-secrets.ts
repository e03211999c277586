import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { LeaseId } from 'leasehold/port'

/** Separates a lease's public id from its secret. No store uses it in its ids. */
const SEPARATOR = '~'
/** 128 bits, in base64url. */
const SECRET_LENGTH = 22

/**
 * Lease secrets. The holder of a lease receives its id with a secret. Using the lease needs this
 * secret, or the right to all keys of the lease.
 *
 * A secret is computed from the id and the server's key, so nothing is stored, and servers with the
 * same key accept each other's secrets.
 */
export class LeaseSecrets {
  readonly #key: Buffer

  constructor(key: Buffer) {
    this.#key = key
  }

  /** The id with its secret, for the holder. */
  sign(lease: LeaseId): LeaseId {
    return `${lease}${SEPARATOR}${this.#secretOf(lease)}`
  }

  /** The public id, and whether the secret was correct. */
  open(given: LeaseId): { readonly lease: LeaseId; readonly proven: boolean } {
    const at = given.lastIndexOf(SEPARATOR)
    if (at < 0) return { lease: given, proven: false }
    const lease = given.slice(0, at)
    return { lease, proven: equalInConstantTime(given.slice(at + 1), this.#secretOf(lease)) }
  }

  #secretOf(lease: LeaseId): string {
    return createHmac('sha256', this.#key).update(lease).digest('base64url').slice(0, SECRET_LENGTH)
  }
}

/** Compares two strings in a time that does not depend on their content. */
export function equalInConstantTime(a: string, b: string): boolean {
  return timingSafeEqual(hash(a), hash(b))
}

function hash(value: string): Buffer {
  return createHash('sha256').update(value).digest()
}
