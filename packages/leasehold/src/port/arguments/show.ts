/**
 * A URL without its secrets, for printing. The part before the last @ may contain a password, and
 * the parameter `sig` is the signature of an Azure shared access URL.
 */
export function withoutPassword(url: string): string {
  return url.replace(/:\/\/.*@/, '://…@').replace(/([?&]sig=)[^&]*/g, '$1…')
}

/** A value for an error message: quoted, and never long. */
export function show(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value)
  }
  if (typeof value === 'object' && value !== null)
    return Array.isArray(value) ? 'an array' : 'an object'
  if (typeof value === 'function') return 'a function'
  return String(value)
}
