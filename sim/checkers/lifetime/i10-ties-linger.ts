import type { End } from 'leasehold/port'
import type { Checker, Truth, Violated } from '../checker.js'
import type { LeaseRecord } from '../history.js'

/** The name under which the server revokes leases that are tied to a connection. */
export const SERVER = 'leasehold-server'

/**
 * I10 for leases that are tied to a connection: the server revokes none before its client has been
 * away for the whole linger time.
 */
export function tiesLinger(
  violated: Violated,
  lingers: (stream: string, grantedFrom: number, serverRate: number) => number,
): Checker {
  const check = (
    { lease, stream, grantedFrom }: LeaseRecord,
    end: End | undefined,
    { serverRate }: Truth,
  ): void => {
    if (end?.by !== SERVER) return
    const early = stream === undefined ? Infinity : lingers(stream, grantedFrom, serverRate)
    if (early > 0.001) violated(`lease ${lease} was revoked ${early} ms before its linger was over`)
  }
  return {
    name: 'I10 ties linger',
    removed: ({ end }, lease, truth) => check(lease, end, truth),
  }
}
