/** How late an expiry is announced beside 100,000 leases that are alive and renewed. */
import { memoryStore } from 'leasehold/memory'
import { atMost, percentile, row } from '../../../measure/rows.js'

const ALIVE = 100_000
const SAMPLES = 2000

const store = memoryStore()
const alive: string[] = []
for (let i = 0; i < ALIVE; i++) {
  const granted = await store.grant({ holder: `agent-${i}`, ttl: 10_000 })
  if (granted.outcome === 'granted') alive.push(granted.lease)
}
const deadlines = new Map<string, number>()
const lags: number[] = []
store.watch({ prefix: 'lag/' }, (notice) => {
  if (notice.type !== 'events') return
  for (const { type, key } of notice.events) {
    if (type === 'removed') lags.push(performance.now() - deadlines.get(key)!)
  }
})
let at = 0
for (let i = 0; lags.length < SAMPLES; i++) {
  await new Promise((resolve) => setTimeout(resolve, 2))
  // Each lease is renewed three times per ttl, as by a fleet.
  for (let batch = 0; batch < 2; batch++, at = (at + 100) % ALIVE) {
    await store.renew(alive.slice(at, at + 100))
  }
  if (i >= SAMPLES) continue
  const key = `lag/${i}`
  const ttl = 50 + (i % 97)
  deadlines.set(key, performance.now() + ttl)
  await store.grant({ holder: 'sample', ttl, claims: [{ key }] })
}
await store.close()
console.log(
  JSON.stringify([
    row('expiry lag with 100,000 leases alive, p50', 'ms', [percentile(lags, 0.5)]),
    row('expiry lag with 100,000 leases alive, p99', 'ms', [percentile(lags, 0.99)], atMost(5)),
    row('expiry lag with 100,000 leases alive, worst', 'ms', [Math.max(...lags)]),
  ]),
)
