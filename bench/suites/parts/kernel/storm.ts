/** A million leases with one deadline, and the delay of other renewals. */
import { memoryStore } from 'leasehold/memory'
import { atMost, percentile, row } from '../../../measure/rows.js'

const LEASES = 1_000_000
const OTHERS = 1000
/** A shorter interval would be impossible even without a storm, because each renewal takes time. */
const BEAT_MS = 5

const store = memoryStore()
const ttl = 20_000
const start = performance.now()
// One deadline for all: each ttl is the time that is left until then.
for (let i = 0; i < LEASES; i++) {
  void store.grant({ holder: 'storm', ttl: ttl - (performance.now() - start) })
  if (i % 10_000 === 0) await new Promise((resolve) => setImmediate(resolve))
}
const others: string[] = []
for (let i = 0; i < OTHERS; i++) {
  const granted = await store.grant({ holder: 'steady', ttl: 1000 })
  if (granted.outcome === 'granted') others.push(granted.lease)
}
const left = async () => (await store.read({ leases: true, limit: 1 })).leases
const latencies: number[] = []
let lost = 0
let ended = 0
// Renews all other leases every few milliseconds. The time counts from when a renewal was due.
let due = performance.now()
while (ended === 0) {
  due += BEAT_MS
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())))
  const answer = await store.renew(others)
  lost += answer.lost.length
  const now = performance.now()
  if (now >= start + ttl) latencies.push(now - due)
  if (now > start + ttl && (await left())[0]?.holder !== 'storm') ended = now
}
await store.close()
console.log(
  JSON.stringify([
    row(
      '1,000,000 leases with one deadline: until all are gone',
      'ms',
      [ended - start - ttl],
      atMost(1500),
    ),
    row('renewals meanwhile, p99', 'ms', [percentile(latencies, 0.99)], atMost(20)),
    row('renewed leases that were lost meanwhile', '', [lost], atMost(0)),
  ]),
)
