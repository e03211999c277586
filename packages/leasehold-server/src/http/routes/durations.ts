import { type Duration, invalid, milliseconds, show } from 'leasehold/port'
import type { Call } from '../route.ts'

/** Parses a duration from a query or a body: `30s`, `30000`, or the number. */
export function durationOf(name: string, value: string | number): number {
  if (typeof value === 'string' && /^\d+(\.\d+)?$/.test(value)) return Number(value)
  return milliseconds(value as Duration, name)
}

export function optionalDuration(
  name: string,
  value: string | number | undefined,
): number | undefined {
  return value === undefined ? undefined : durationOf(name, value)
}

/** The wait of a request. Default: 0. Refuses a wait that is too long. */
export function waitOf({ query, options }: Call): number {
  const given: string | number | undefined = query['wait']
  const wait = optionalDuration('wait', given) ?? 0
  if (wait <= options.longPoll) return wait
  throw invalid(
    `wait is ${show(given)}; the maximum is ${options.longPoll / 1000}s. Ask again after that`,
  )
}
