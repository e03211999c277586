import type { Checker, Violated } from '../checker.js'

/**
 * I2 for `reclaim`: between the loss of a lock and its return, nobody held it who could have
 * changed anything. Other shared holders may have come and gone.
 */
export function reclaimedUntouched(violated: Violated): Checker {
  const reclaims: { readonly keys: readonly string[]; lost: number; token: number }[] = []
  return {
    name: 'I2 reclaimed untouched',
    reclaimed(keys, lost, token) {
      reclaims.push({ keys, lost, token })
    },
    finish({ holdings }) {
      for (const { keys, lost, token } of reclaims) {
        const between = holdings.find(
          (one) =>
            !one.shared &&
            one.token > lost &&
            one.token < token &&
            one.keys.some((key) => keys.includes(key)),
        )
        if (between) {
          violated(`${keys}: token ${lost} was taken back as ${token}, but ${between.token} held`)
        }
      }
    },
  }
}
