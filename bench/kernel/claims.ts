/** How fast the kernel takes and releases exclusive claims. */
import { Kernel } from 'leasehold/kernel'
import { atLeast, perSecond, rounds, row } from '../rows.js'

const PAIRS = 1_000_000

const kernel = new Kernel()
const granted = kernel.grant({ holder: 'bench', ttl: Infinity }, 1000)
if (granted.outcome !== 'granted') throw new Error('not granted')
const { lease } = granted

function pairs(keys: readonly string[]): number {
  return perSecond(PAIRS, () => {
    for (let i = 0; i < PAIRS; i++) {
      const key = keys[i % keys.length]!
      const claimed = kernel.claim({ lease, claims: [{ key }] }, 1000 + i)
      if (claimed.outcome !== 'claimed' || !claimed.holds) throw new Error('not held')
      kernel.release({ lease, keys: [key], token: claimed.token }, 1000 + i)
    }
  })
}

const some = Array.from({ length: 1000 }, (_, i) => `jobs/report-${i}`)
const many = Array.from({ length: 50_000 }, (_, i) => `jobs/import-${i}`)
pairs(some)
pairs(many)
console.log(
  JSON.stringify([
    row(
      'kernel claim + release, 1,000 keys',
      'pairs/s',
      await rounds(5, () => pairs(some)),
      atLeast(1e6),
    ),
    row('kernel claim + release, 50,000 keys', 'pairs/s', await rounds(5, () => pairs(many))),
  ]),
)
