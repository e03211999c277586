import { type Clock, isLeaseholdError, withTimeout } from 'leasehold/port'
import type { MeasuredStore } from './measured-store.ts'

const PROBE_MS = 1000

/**
 * Why the store cannot be written, or `undefined` if it can. After a storage error, each call writes
 * a probe: a server without traffic must notice that its storage works again.
 */
export async function storageErrorOf(
  store: MeasuredStore,
  clock: Clock,
): Promise<string | undefined> {
  if (store.storageError === undefined) return undefined
  const late = () => new Error(store.storageError ?? 'the store does not answer')
  const probe = withTimeout(clock, clock.now() + PROBE_MS, write(store), late)
  return probe.catch((error: Error) => error.message)
}

async function write(store: MeasuredStore): Promise<string | undefined> {
  try {
    const ttl = Math.max(PROBE_MS, store.guarantees.ttl.min)
    const granted = await store.grant({ holder: 'leasehold', ttl })
    store.storageError = undefined
    if (granted.outcome === 'granted') await store.revoke({ target: { lease: granted.lease } })
    return undefined
  } catch (error) {
    return isLeaseholdError(error) ? error.message : String(error)
  }
}
