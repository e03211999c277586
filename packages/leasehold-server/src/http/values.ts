import { type Duration, invalid, milliseconds, show } from 'leasehold/port'
import type { Call } from './route.ts'

/** A duration as it stands in a query or a body: `30s`, `30000`, or the number. */
export function durationOf(name: string, value: string | number): number {
  if (typeof value === 'string' && /^\d+(\.\d+)?$/.test(value)) return Number(value)
  return milliseconds(value as Duration, name)
}

export function maybeDuration(
  name: string,
  value: string | number | undefined,
): number | undefined {
  return value === undefined ? undefined : durationOf(name, value)
}

/** How long a request is to wait: not at all if it does not say so, and never too long. */
export function waitOf({ query, options }: Call): number {
  const given: string | number | undefined = query['wait']
  const wait = maybeDuration('wait', given) ?? 0
  if (wait <= options.longPoll) return wait
  throw invalid(
    `wait is ${show(given)}: one request waits at most ${options.longPoll / 1000}s, so ask again after that`,
  )
}
