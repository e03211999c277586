import type { LeaseId, Revision } from '../port/index.ts'

/**
 * A lease's id is its slot and the revision at which it was granted, as in `17.20391`. The slot
 * makes finding it an array access; the revision, which is never given twice, makes the id of an
 * ended lease miss whoever has the slot now.
 */
export function leaseId(slot: number, born: Revision): LeaseId {
  return `${slot}.${born}`
}

const DOT = 46
const ZERO = 48

/** The slot in the id, or -1 where it is no id of ours. Called for each renewal: no substrings. */
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
  // A leading zero would make a second spelling of the same id.
  if (id.charCodeAt(start) === ZERO) return -1
  for (let at = start; at < id.length; at++) {
    const digit = id.charCodeAt(at) - ZERO
    if (digit < 0 || digit > 9) return -1
    born = born * 10 + digit
  }
  return born
}
