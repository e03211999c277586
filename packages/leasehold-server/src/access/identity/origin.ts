import type { IncomingHttpHeaders } from 'node:http'

/** Whether the request comes from a browser page of another origin. */
export function isForeign({ origin, host }: IncomingHttpHeaders): boolean {
  if (origin === undefined) return false
  return !(URL.canParse(origin) && new URL(origin).host === host)
}
