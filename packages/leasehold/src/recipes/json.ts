import { isLeaseholdError, LeaseholdError, show } from '../port/index.ts'

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
  throw new LeaseholdError(
    'invalid-argument',
    `${what} is ${show(value)}, which JSON cannot hold: give a value such as null or an object`,
  )
}

/** Carries out a call that stores a value; where that passes a limit, the error says of what. */
export async function storing<Answer>(what: string, call: Promise<Answer>): Promise<Answer> {
  try {
    return await call
  } catch (error) {
    if (!isLeaseholdError(error, 'limit-exceeded')) throw error
    throw new LeaseholdError(
      error.code,
      `${what} cannot be stored: ${error.message}; keep what is large elsewhere, and its name here`,
      { cause: error },
    )
  }
}

/** The first part of the keys of a recipe's instance; a `/` would let two of them overlap. */
export function checkInstance(recipe: string, name: unknown): string {
  if (typeof name === 'string' && name !== '' && !name.includes('/')) return name
  throw new LeaseholdError(
    'invalid-argument',
    `the name of the ${recipe} is ${show(name)}: it must be a text without '/'`,
  )
}

/** A text of the user's as one part of a key, whatever is in it. */
export function keyPart(text: string, what: string): string {
  if (typeof text === 'string' && text !== '' && text.isWellFormed()) {
    return encodeURIComponent(text)
  }
  throw new LeaseholdError(
    'invalid-argument',
    `${what} is ${show(text)}: it must be a text that is not empty`,
  )
}
