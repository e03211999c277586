import { isLeaseholdError } from '../port/index.ts'

/** Whether a call was refused because the lease or the claim that it named is no more. */
export function isGone(error: unknown): boolean {
  return (
    isLeaseholdError(error, 'lease-ended') ||
    isLeaseholdError(error, 'lease-not-found') ||
    isLeaseholdError(error, 'claim-not-found')
  )
}
