import { isLeaseholdError, LeaseholdError } from '../port/index.ts'

/** Whether the store refused a call because its lease or claim no longer exists. */
export function isGone(error: unknown): boolean {
  return (
    isLeaseholdError(error, 'lease-ended') ||
    isLeaseholdError(error, 'lease-not-found') ||
    isLeaseholdError(error, 'claim-not-found')
  )
}

/** Runs a call that stores a value. If the value exceeds a limit, the error names the value. */
export async function storing<Answer>(what: string, call: Promise<Answer>): Promise<Answer> {
  try {
    return await call
  } catch (error) {
    if (!isLeaseholdError(error, 'limit-exceeded')) throw error
    throw new LeaseholdError(
      error.code,
      `${what} cannot be stored: ${error.message}; store large data elsewhere, and only its name here`,
      { cause: error },
    )
  }
}
