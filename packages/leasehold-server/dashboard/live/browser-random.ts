import type { Random } from 'leasehold/port'

/** The browser's random numbers; the build uses them instead of `port/random.ts`. */
export const systemRandom: Random = {
  next: () => Math.random(),
  id: () => {
    const bytes = crypto.getRandomValues(new Uint8Array(16))
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  },
}
