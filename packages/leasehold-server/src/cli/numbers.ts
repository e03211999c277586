import { invalid, show } from 'leasehold/port'

/** An option that is an integer; `--limit abc` must not silently mean something else. */
export function integerOf(option: string, text: string, min: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && Number.isSafeInteger(value)) return value
  throw invalid(
    `${option} is ${show(text)}: it must be an integer from ${min} to ${Number.MAX_SAFE_INTEGER}`,
  )
}

/** An option that is any number. */
export function numberOf(option: string, text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isFinite(value)) return value
  throw invalid(`${option} is ${show(text)}: it must be a number`)
}
