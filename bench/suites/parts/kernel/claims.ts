/** How fast the kernel takes and releases exclusive claims. */
import { Kernel } from 'leasehold/kernel'
import { atLeast, perSecond, rounds, row } from '../../../measure/rows.js'

const PAIRS = 1_000_000

/** A new kernel for each number of keys, like a store that has only these. */
function measure(count: number): () => number {
  const kernel = new Kernel()
  const granted = kernel.grant({ holder: 'bench', ttl: Infinity }, 1000)
  if (granted.outcome !== 'granted') throw new Error('not granted')
  const { lease } = granted
  const keys = Array.from({ length: count }, (_, i) => `jobs/import-${i}`)
  return () =>
    perSecond(PAIRS, () => {
      for (let i = 0; i < PAIRS; i++) {
        const key = keys[i % count]!
        const claimed = kernel.claim({ lease, claims: [{ key }] }, 1000 + i)
        if (claimed.outcome !== 'claimed' || !claimed.holds) throw new Error('not held')
        kernel.release({ lease, keys: [key], token: claimed.token }, 1000 + i)
      }
    })
}

const some = measure(1000)
const many = measure(50_000)
some()
many()
console.log(
  JSON.stringify([
    row('kernel claim + release, 1,000 keys', 'pairs/s', await rounds(7, some), atLeast(1e6)),
    row('kernel claim + release, 50,000 keys', 'pairs/s', await rounds(7, many)),
  ]),
)
