import { createHmac } from 'node:crypto'
import { equalInConstantTime } from '../guard/lease-secrets.ts'

/** How long a browser stays signed in. */
export const SESSION_MS = 12 * 60 * 60_000
const FORM = /^([A-Za-z0-9-]{1,64})\.(\d{1,15})\.([A-Za-z0-9_-]{43})$/

/** A received session whose signature is not checked yet. */
export interface ShownSession {
  readonly name: string
  /** Whether it was signed for the access token with this hash. */
  isOf(hash: string): boolean
}

/**
 * Sessions for browsers, which cannot send an access token when they open a stream. A session is a
 * name and an expiry, signed with the server's key and the hash of the access token. So nothing is
 * stored, every server with the same key accepts it, and it ends when its access token ends.
 */
export class BrowserSessions {
  readonly #key: Buffer

  constructor(key: Buffer) {
    this.#key = createHmac('sha256', key).update('sessions of browsers').digest()
  }

  begin(name: string, hash: string, now: number): string {
    const end = Math.floor(now + SESSION_MS)
    return `${name}.${end}.${this.#sign(name, String(end), hash)}`
  }

  /** Parses a session; `undefined` if it is malformed or has expired. */
  open(given: string, now: number): ShownSession | undefined {
    const parts = FORM.exec(given)
    if (parts === null) return undefined
    const [, name, end, signature] = parts as unknown as readonly [string, string, string, string]
    if (Number(end) <= now) return undefined
    return { name, isOf: (hash) => equalInConstantTime(signature, this.#sign(name, end, hash)) }
  }

  #sign(name: string, end: string, hash: string): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([name, end, hash]))
      .digest('base64url')
  }
}
