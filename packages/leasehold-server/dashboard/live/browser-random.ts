import type { Random } from 'leasehold/port'

/** Chance in a browser, in the place of the machine's. */
export const systemRandom: Random = {
  next: () => Math.random(),
  id: () => {
    const bytes = crypto.getRandomValues(new Uint8Array(16))
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  },
}
