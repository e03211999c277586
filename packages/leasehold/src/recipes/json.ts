import { invalid, LeaseholdError, show } from '../port/index.ts'

/** A value as the text that others can read. `what` is what an error calls it. */
export function jsonOf(value: unknown, what: string): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    throw new LeaseholdError(
      'invalid-argument',
      `${what} cannot be written as JSON (${(error as Error).message}): give plain objects, arrays, texts, numbers and booleans`,
      { cause: error },
    )
  }
  if (text !== undefined) return text
  throw invalid(
    `${what} is ${show(value)}, which JSON cannot hold: give a value such as null or an object`,
  )
}

/**
 * The object that the value of a claim holds; `undefined` where it holds none. Whoever may claim a
 * key can write anything there, so this is no error.
 */
export function objectIn(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '')
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
