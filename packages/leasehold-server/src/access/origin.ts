import type { IncomingHttpHeaders } from 'node:http'

/** Whether a page of somebody else's asks, in a browser that can reach this server. */
export function isForeign({ origin, host }: IncomingHttpHeaders): boolean {
  if (origin === undefined) return false
  return !(URL.canParse(origin) && new URL(origin).host === host)
}
