import { createHmac } from 'node:crypto'
import { sameText } from './secrets.ts'

/** How long a browser stays signed in. */
export const SESSION_MS = 12 * 60 * 60_000
const FORM = /^([A-Za-z0-9-]{1,64})\.(\d{1,15})\.([A-Za-z0-9_-]{43})$/

/** A session that was shown, before it is known whether its seal is right. */
export interface ShownSession {
  readonly name: string
  /** Whether the seal is that of the token with this hash. */
  isOf(hash: string): boolean
}

/**
 * What a browser shows instead of a token, which it cannot send when it opens a stream: a name and an
 * end, sealed with the server's key and the hash of the token that it stands for. So nothing is
 * stored; every server with the same key knows it; and it ends with its token, whatever its own end.
 */
export class BrowserSessions {
  readonly #key: Buffer

  constructor(key: Buffer) {
    this.#key = createHmac('sha256', key).update('sessions of browsers').digest()
  }

  begin(name: string, hash: string, now: number): string {
    const end = Math.floor(now + SESSION_MS)
    return `${name}.${end}.${this.#seal(name, String(end), hash)}`
  }

  /** What was shown, or nothing where it is none of ours or has ended. */
  open(text: string, now: number): ShownSession | undefined {
    const parts = FORM.exec(text)
    if (parts === null) return undefined
    const [, name, end, seal] = parts as unknown as readonly [string, string, string, string]
    if (Number(end) <= now) return undefined
    return { name, isOf: (hash) => sameText(seal, this.#seal(name, end, hash)) }
  }

  #seal(name: string, end: string, hash: string): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([name, end, hash]))
      .digest('base64url')
  }
}
