/** The kernel, from a thousand leases to ten million. */
import { Kernel } from 'leasehold/kernel'
import type { Run } from '../contest.js'
import { atMost, type Row } from '../rows.js'
import { growthOf, pointOf } from './points.js'

const SIZES = [1000, 10_000, 100_000, 1_000_000, 10_000_000]
const RUN_MS = 100
const BATCH = 100
const NOW = 1000

const kernel = new Kernel()
/** Of the first hundred thousand all, and then one of fifty: enough to be renewed in no order. */
const kept: string[] = []
let filled = 0

function granted(claims?: readonly { readonly key: string }[]): string {
  const answer = kernel.grant({ holder: 'bench', ttl: 3_600_000, claims }, NOW)
  if (answer.outcome !== 'granted') throw new Error(`not granted: ${JSON.stringify(answer)}`)
  return answer.lease
}

function fill(size: number): void {
  for (; filled < size; filled++) {
    const lease = granted()
    if (filled < 100_000 || filled % 50 === 0) kept.push(lease)
  }
  // Heartbeats arrive in no order.
  for (let at = kept.length - 1; at > 0; at--) {
    const other = (at * 7919) % (at + 1)
    ;[kept[at], kept[other]] = [kept[other]!, kept[at]!]
  }
}

/** Microseconds of the processor for one, while it is done again and again; it waits for nothing. */
async function cost(act: (number: number) => void, each = 1): Promise<Run> {
  const used = process.cpuUsage()
  const start = performance.now()
  let count = 0
  while (performance.now() - start < RUN_MS) for (let i = 0; i < 50; i++) act(count++)
  const { user, system } = process.cpuUsage(used)
  return { value: (user + system) / (count * each), count: count * each }
}

const holder = granted()
function claimAndRelease(number: number): void {
  const key = `jobs/${number % 1000}`
  const claimed = kernel.claim({ lease: holder, claims: [{ key }] }, NOW)
  if (claimed.outcome !== 'claimed' || !claimed.holds) throw new Error('not held')
  kernel.release({ lease: holder, keys: [key], token: claimed.token }, NOW)
}

function grantAndRevoke(number: number): void {
  const lease = granted([{ key: `runs/${number % 1000}` }])
  kernel.revoke({ target: { lease } }, NOW)
}

let at = 0
function renew(): void {
  at = at + BATCH > kept.length ? 0 : at
  kernel.renew(kept.slice(at, at + BATCH), NOW)
  at += BATCH
}

// What is measured first must not be what is compiled last.
fill(SIZES[0]!)
for (let time = 0; time < 10; time++) {
  await cost(renew, BATCH)
  await cost(claimAndRelease)
  await cost(grantAndRevoke)
}
const rows: Row[] = []
for (const leases of SIZES) {
  fill(leases)
  const point = (curve: string, ours: () => Promise<Run>) => pointOf({ curve, leases, ours })
  rows.push(...(await point('kernel: renew', () => cost(renew, BATCH))))
  rows.push(...(await point('kernel: claim + release', () => cost(claimAndRelease))))
  rows.push(...(await point('kernel: grant with a key + revoke', () => cost(grantAndRevoke))))
}
const million = rows.filter(({ point }) => point!.leases <= 1_000_000)
const goals = { 'kernel: renew': atMost(2) }
console.log(JSON.stringify([...rows, ...growthOf(million, goals), ...growthOf(rows)]))
