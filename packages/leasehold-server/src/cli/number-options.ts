import { invalid, show } from 'leasehold/port'

/** Parses an integer option. */
export function integerOf(option: string, given: string, min: number): number {
  const value = Number(given)
  if (/^\d+$/.test(given) && value >= min && Number.isSafeInteger(value)) return value
  throw invalid(
    `${option} is ${show(given)}: it must be an integer from ${min} to ${Number.MAX_SAFE_INTEGER}`,
  )
}

/** Parses a number option. */
export function numberOf(option: string, given: string): number {
  const value = Number(given)
  if (given.trim() !== '' && Number.isFinite(value)) return value
  throw invalid(`${option} is ${show(given)}: it must be a number`)
}
