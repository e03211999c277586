import { type Clock, isLeaseholdError } from 'leasehold/port'
import type { MeasuredStore } from './measured-store.ts'

const PROBE_MS = 1000

/**
 * Whether the store can be written. It is taken to be so until a change has failed for want of
 * storage; from then on each question writes something itself, so that a server that nobody is
 * sent to any more finds out that it is well again.
 */
export async function storeTrouble(
  store: MeasuredStore,
  clock: Clock,
): Promise<string | undefined> {
  if (store.trouble === undefined) return undefined
  const late = new Promise<string>((resolve) => {
    clock.timer(clock.now() + PROBE_MS, () => resolve(store.trouble ?? 'it does not answer'), true)
  })
  return Promise.race([late, write(store)])
}

async function write(store: MeasuredStore): Promise<string | undefined> {
  try {
    const ttl = Math.max(PROBE_MS, store.guarantees.ttl.min)
    const granted = await store.grant({ holder: 'leasehold', ttl })
    store.trouble = undefined
    if (granted.outcome === 'granted') await store.revoke({ target: { lease: granted.lease } })
    return undefined
  } catch (error) {
    return isLeaseholdError(error) ? error.message : String(error)
  }
}
