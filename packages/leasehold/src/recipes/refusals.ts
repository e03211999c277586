import { isLeaseholdError, LeaseholdError } from '../port/index.ts'

/** Whether a call was refused because the lease or the claim that it named is no more. */
export function isGone(error: unknown): boolean {
  return (
    isLeaseholdError(error, 'lease-ended') ||
    isLeaseholdError(error, 'lease-not-found') ||
    isLeaseholdError(error, 'claim-not-found')
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
