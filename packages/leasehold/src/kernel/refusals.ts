import { type End, type LeaseId, type Refusal, show } from '../port/index.ts'
import type { Ledger } from './ledger.ts'
import type { Refused } from './outputs/index.ts'
import { bornOf, slotOf } from './tables/index.ts'

export function refused(refusal: Refusal): Refused {
  return { outcome: 'refused', refusal }
}

export function exceeded(message: string): Refused {
  return refused({ code: 'limit-exceeded', message })
}

/** How a lease ended, if the kernel still knows. */
export function endOf(ledger: Ledger, id: LeaseId): End | undefined {
  return slotOf(id) === -1 ? undefined : ledger.ended.get(bornOf(id))
}

/** Why the lease does not exist. */
export function noLease(ledger: Ledger, id: LeaseId): Refusal {
  const end = endOf(ledger, id)
  if (!end) {
    return {
      code: 'lease-not-found',
      message: `there is no lease ${show(id)}: it never existed, or it ended long ago. Take a new one.`,
    }
  }
  const by = end.by ? ` by ${end.by}` : ''
  const why = end.why ? `, because ${end.why}` : ''
  const message = `lease ${id} has ended: ${end.reason}${by}${why}. Take a new one.`
  return { code: 'lease-ended', message, end }
}
