import { invalid, LeaseholdError, show } from '../../port/index.ts'

/** Converts a value to JSON. Errors call the value `what`. */
export function jsonOf(value: unknown, what: string): string {
  let json: string | undefined
  try {
    json = JSON.stringify(value)
  } catch (error) {
    throw new LeaseholdError(
      'invalid-argument',
      `${what} cannot be written as JSON (${(error as Error).message}): give plain objects, arrays, strings, numbers and booleans`,
      { cause: error },
    )
  }
  if (json !== undefined) return json
  throw invalid(
    `${what} is ${show(value)}, which JSON cannot hold: give a value such as null or an object`,
  )
}

/**
 * Parses the object in a claim's value. Returns `undefined` if there is none: anybody who may claim
 * a key can write anything there, so that is not an error.
 */
export function objectIn(json: string | undefined): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(json ?? '')
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
