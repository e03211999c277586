/** The memory cost of a lease, by the memory of the whole process. */
import { Kernel } from 'leasehold/kernel'
import { atMost, row } from '../../../measure/rows.js'

const LEASES = 1_000_000

function resident(): number {
  for (let i = 0; i < 4; i++) globalThis.gc?.()
  return process.memoryUsage.rss()
}

const kernel = new Kernel()
const before = resident()
for (let i = 0; i < LEASES; i++) kernel.grant({ holder: `agent-${i}`, ttl: 60_000 }, 1000)
const leases = resident()
for (let i = 0; i < LEASES; i++)
  kernel.grant({ holder: `agent-${i}`, ttl: 60_000, claims: [{ key: `jobs/import-${i}` }] }, 1000)
const withKeys = resident()
if (kernel.leases !== 2 * LEASES) throw new Error('leases are missing')
console.log(
  JSON.stringify([
    row('memory of a lease, at 1,000,000', 'bytes', [(leases - before) / LEASES], atMost(250)),
    row(
      'memory of a lease with one key, a further 1,000,000',
      'bytes',
      [(withKeys - leases) / LEASES],
      atMost(400),
    ),
  ]),
)
