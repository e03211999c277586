/** How fast the kernel renews, and whether a million leases make a renewal dearer. */
import { Kernel } from 'leasehold/kernel'
import { atLeast, atMost, perSecond, rounds, row } from '../rows.js'

const BATCH = 1000
const RENEWALS = 4_000_000

function renewals(leases: number): () => number {
  const kernel = new Kernel()
  const ids: string[] = []
  for (let i = 0; i < leases; i++) {
    const granted = kernel.grant({ holder: `agent-${i}`, ttl: 30_000 }, 1000)
    if (granted.outcome === 'granted') ids.push(granted.lease)
  }
  // Heartbeats arrive in no order: a lease's neighbours in a batch are not its neighbours in memory.
  for (let i = ids.length - 1; i > 0; i--) {
    const j = (i * 7919) % (i + 1)
    ;[ids[i], ids[j]] = [ids[j]!, ids[i]!]
  }
  const batches: string[][] = []
  for (let at = 0; at < ids.length; at += BATCH) batches.push(ids.slice(at, at + BATCH))
  return () =>
    perSecond(RENEWALS, () => {
      for (let done = 0, at = 0; done < RENEWALS; done += BATCH, at++) {
        kernel.renew(batches[at % batches.length]!, 2000 + done / 1e6)
      }
    })
}

const few = renewals(1000)
const many = renewals(1_000_000)
few()
many()
const fast = await rounds(5, few)
const large = await rounds(5, many)
const cost = fast.map((value, index) => value / large[index]!)
console.log(
  JSON.stringify([
    row('kernel renewals, 1,000 leases', '/s', fast, atLeast(5e6)),
    row('kernel renewals, 1,000,000 leases in random order', '/s', large, atLeast(5e6)),
    row('cost of a renewal at 1,000,000 leases against 1,000', 'x', cost, atMost(2)),
  ]),
)
