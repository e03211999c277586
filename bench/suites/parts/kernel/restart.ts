/** Opening a store with a million leases, and the pauses of the event loop during its snapshots. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from 'leasehold/file'
import type { LeaseStore } from 'leasehold/port'
import { atMost, percentile, roundsWanted, row } from '../../../measure/rows.js'

const LEASES = 1_000_000
const AT_ONCE = 2000
const STEADY_MS = 20_000

const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))

async function load(store: LeaseStore): Promise<void> {
  for (let i = 0; i < LEASES; i += AT_ONCE) {
    const grants: Promise<unknown>[] = []
    for (let j = i; j < i + AT_ONCE; j++) {
      const claims = [{ key: `jobs/import-${j}` }]
      grants.push(store.grant({ holder: `agent-${j}`, ttl: 3_600_000, claims }))
    }
    await Promise.all(grants)
  }
}

/** Makes enough changes for a snapshot, and measures how late a timer is meanwhile. */
async function pausesWhileChanging(store: LeaseStore): Promise<number[]> {
  const pauses: number[] = []
  const granted = await store.grant({ holder: 'steady', ttl: 3_600_000 })
  if (granted.outcome !== 'granted') throw new Error('not granted')
  const { lease } = granted
  const value = 'x'.repeat(1000)
  let last = performance.now()
  const watch = setInterval(() => {
    const now = performance.now()
    pauses.push(now - last - 1)
    last = now
  }, 1)
  const end = performance.now() + STEADY_MS
  while (performance.now() < end) {
    const work = Array.from({ length: 64 }, async (_, worker) => {
      const key = `steady/${worker}`
      const claimed = await store.claim({ lease, claims: [{ key, value }] })
      if (claimed.outcome !== 'claimed') throw new Error('not claimed')
      await store.release({ lease, keys: [key], token: claimed.token })
    })
    await Promise.all(work)
  }
  clearInterval(watch)
  return pauses
}

let store = await fileStore(folder)
await load(store)
await store.close()
const opened: number[] = []
const ROUNDS = roundsWanted(5)
for (let round = 0; round < ROUNDS; round++) {
  process.stderr.write(`  opening: round ${round + 1} of ${ROUNDS}\n`)
  const start = performance.now()
  store = await fileStore(folder)
  opened.push(performance.now() - start)
  if ((await store.read({ leases: true, limit: 1 })).leases.length !== 1) throw new Error('empty')
  if (round < ROUNDS - 1) await store.close()
}
const pauses = await pausesWhileChanging(store)
await store.close()
rmSync(folder, { recursive: true })
console.log(
  JSON.stringify([
    row('restart with 1,000,000 leases and keys: until ready', 'ms', opened, atMost(5000)),
    row('pauses of the event loop at 1,000,000 leases, snapshots included, p99', 'ms', [
      percentile(pauses, 0.99),
    ]),
    row(
      'pauses of the event loop at 1,000,000 leases, snapshots included, worst',
      'ms',
      [Math.max(...pauses)],
      atMost(20),
    ),
  ]),
)
