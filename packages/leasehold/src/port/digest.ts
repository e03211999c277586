import { createHash } from 'node:crypto'

/**
 * The SHA-256 of a text, in base64url: a name for a secret that does not give the secret away. It is
 * made for secrets that nobody can guess, and keeps no password safe.
 */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
