import type { End } from 'leasehold/port'
import type { Checker, LossRecord, Violated } from '../checker.js'
import { ancestry, concerns, type Known, livesOn, period } from '../forced-ends.js'
import type { ForcedEnd, LeaseRecord } from '../history.js'
import { SERVER } from './i10-ties-linger.js'

/** The maximum default margin of a client, plus rounding of a clock. */
const MARGIN_MS = 51

/**
 * I13: a holder is notified of the true reason for its loss. It is lost by force only if a client
 * requested that, with the same name and reason. It is lost by expiry, or because the store was
 * unreachable, only if its time may have been over.
 */
export function rightReason(violated: Violated, known: Known, driftBound: number): Checker {
  const asked = (loss: LossRecord): readonly ForcedEnd[] =>
    known.forcedEnds.filter((force) => {
      const { target } = force.request
      if ('prefix' in target) return loss.keys.some((key) => key.startsWith(target.prefix))
      if ('key' in target) return loss.keys.includes(target.key)
      return concerns(force, loss.lease, known)
    })
  const byForce = (loss: LossRecord): void => {
    const { client, lease, reason, by, why } = loss
    if (lease.parent !== undefined || by === SERVER) return
    // After an interrupted watch, it is only known that the claim is gone.
    if (by === undefined && why === undefined) return
    const broken = reason === 'broken'
    const found = asked(loss).some(
      (force) =>
        force.request.by === by && force.request.why === why && period(force) > 0 === broken,
    )
    if (!found) violated(`${client} lost ${loss.keys}: ${reason} by ${by} because of ${why}`)
  }
  const wasAsked = (lease: LeaseRecord, keys: readonly string[], end: End | undefined): void => {
    if (end?.reason !== 'revoked') return
    const { by, why } = end
    if (by === SERVER) return
    // A lease with an unknown ancestor cannot be judged.
    if (ancestry(lease, known).at(-1)!.parent !== undefined) return
    const loss = { client: '', lease, keys, reason: end.reason, by, why }
    if (asked(loss).some(({ request }) => request.by === by && request.why === why)) return
    violated(`lease ${lease.lease} or its claim on ${keys} was revoked, but nobody requested that`)
  }
  return {
    name: 'I13 told the right reason',
    removed: ({ key, end }, lease) => wasAsked(lease, [key], end),
    gone: (lease, end) => wasAsked(lease, [], end),
    lost(loss, { now, drift }) {
      const { client, lease, reason, keys } = loss
      if (reason === 'revoked' || reason === 'broken') byForce(loss)
      if (reason !== 'expired' && reason !== 'unreachable') return
      if (lease.parent !== undefined || lease.maxLife < Infinity) return
      // The lease has a limited life, or a forced end limits it.
      if (asked(loss).length > 0) return
      const believed = livesOn(lease) * (1 - driftBound) - MARGIN_MS
      // Several answers may arrive at one instant: the client acts on the first.
      const from = lease.toldAt < now ? lease.renewedFrom : lease.knownBefore
      const early = from + believed / (1 + drift) - now
      if (early > 0)
        violated(`${client} gave up ${keys} ${early.toFixed(0)} ms too early: ${reason}`)
    },
  }
}
