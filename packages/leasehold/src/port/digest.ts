/**
 * The SHA-256 of a string in base64url, which identifies a secret without revealing it. Only for
 * secrets that nobody can guess; it does not protect a password.
 */
export function sha256(secret: string): string {
  const { createHash } = process.getBuiltinModule('node:crypto')
  return createHash('sha256').update(secret).digest('base64url')
}
