import type { LeaseId, Revision } from '../../port/index.ts'

/**
 * A lease id is the slot and the revision of the grant, such as `17.20391`. The slot makes the
 * lookup an array access. The revision is never used twice, so the id of an ended lease does not
 * match the next lease in that slot.
 */
export function leaseId(slot: number, born: Revision): LeaseId {
  return `${slot}.${born}`
}

const DOT = 46
const ZERO = 48

/** The slot in the id, or -1 if it is not one of our ids. Runs for each renewal: no substrings. */
export function slotOf(id: LeaseId): number {
  let slot = 0
  for (let at = 0; at < id.length && at < 10; at++) {
    const code = id.charCodeAt(at)
    if (code === DOT && at > 0) return slot
    const digit = code - ZERO
    if (digit < 0 || digit > 9) return -1
    slot = slot * 10 + digit
  }
  return -1
}

/** The revision in an id that `slotOf` accepted, or -1. */
export function bornOf(id: LeaseId): Revision {
  let born = 0
  const start = id.indexOf('.') + 1
  if (start === id.length || id.length - start > 16) return -1
  // A leading zero would be a second spelling of the same id.
  if (id.charCodeAt(start) === ZERO) return -1
  for (let at = start; at < id.length; at++) {
    const digit = id.charCodeAt(at) - ZERO
    if (digit < 0 || digit > 9) return -1
    born = born * 10 + digit
  }
  return born
}
