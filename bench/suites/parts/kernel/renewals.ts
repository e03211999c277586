/**
 * How fast the kernel renews, with few and with a million leases. The limit is memory: with a
 * million leases each renewal must fetch a cache line, while a thousand leases fit into the caches.
 * So the bound writes to a bare array with as many rows, in the same order.
 */
import { Kernel } from 'leasehold/kernel'
import { atLeast, atMost, perSecond, roundsOf, row, versus } from '../../../measure/rows.js'
import { batches, shuffle } from '../../../measure/seeded-random.js'

const BATCH = 1000
const RENEWALS = 2_000_000
/** Numbers in a row of the kernel's table of leases. */
const WIDTH = 7

function renewals(leases: number): () => number {
  const kernel = new Kernel()
  const ids: string[] = []
  for (let i = 0; i < leases; i++) {
    const granted = kernel.grant({ holder: `agent-${i}`, ttl: 30_000 }, 1000)
    if (granted.outcome === 'granted') ids.push(granted.lease)
  }
  // Heartbeats arrive in random order: neighbours in a batch are not neighbours in memory.
  const beats = batches(shuffle(ids), BATCH)
  return () =>
    perSecond(RENEWALS, () => {
      for (let done = 0, at = 0; done < RENEWALS; done += BATCH, at++) {
        kernel.renew(beats[at % beats.length]!, 2000 + done / 1e6)
      }
    })
}

function bare(count: number): () => number {
  const table = new Float64Array(count * WIDTH)
  const order = Int32Array.from(shuffle(Array.from({ length: count }, (_, at) => at)))
  return () =>
    perSecond(RENEWALS, () => {
      for (let done = 0; done < RENEWALS; done++) {
        const at = order[done % count]! * WIDTH
        // The value read decides what is written, as in the kernel.
        table[at + 2] = table[at]! >= 0 ? done : 0
      }
    })
}

const LEASES = 1_000_000
const measured = await roundsOf(5, [renewals(1000), renewals(LEASES), bare(LEASES)])
const [few, many, limit] = measured as [number[], number[], number[]]
const dearer = few.map((value, round) => value / many[round]!)
console.log(
  JSON.stringify([
    row('kernel renewals, 1,000 leases', '/s', few, atLeast(5e6)),
    row('kernel renewals, 1,000,000 leases in random order', '/s', many, atLeast(5e6)),
    versus('kernel renewals, 1,000,000 leases in random order', many, limit, {
      unit: '/s',
      better: 'more',
      peerName: 'a bare array of as many rows',
      limit: true,
    }),
    row('cost of a renewal at 1,000,000 leases against 1,000', 'x', dearer, atMost(2)),
  ]),
)
