/**
 * An address as it can be printed: whatever stands before the last @ may hold a password, and the
 * setting `sig` is the signature of a shared access to Azure.
 */
export function withoutPassword(url: string): string {
  return url.replace(/:\/\/.*@/, '://…@').replace(/([?&]sig=)[^&]*/g, '$1…')
}

/** A value as it can stand in an error message: quoted, and never long. */
export function show(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value)
  }
  if (typeof value === 'object' && value !== null)
    return Array.isArray(value) ? 'an array' : 'an object'
  if (typeof value === 'function') return 'a function'
  return String(value)
}
