// Run it: npm run build && node examples/dist/moving-time.js
import { isLeaseholdError, Leasehold } from 'leasehold'
import { testStore } from 'leasehold/testing'

/**
 * A test of your own code need not wait: it moves the clock. Here a holder stalls for longer than its
 * ttl, and finds out at its first check of the lock.
 */
const { store, clock } = testStore()
const first = await Leasehold.open(store, { clock, holder: 'first' })
const second = await Leasehold.open(store, { clock, holder: 'second' })

const lock = await first.lock('printer', { ttl: '30s' })
await clock.advance(60 * 60_000)
console.log(`after an hour of heartbeats: ${lock.state}, token ${lock.token}`)

clock.stall(31_000)
try {
  console.log(`must not be seen: ${lock.token}`)
} catch (error) {
  if (!isLeaseholdError(error, 'lost')) throw error
  console.log(`after a stall of 31 s: ${lock.state}, ${error.reason}`)
}

const next = await second.lock('printer', { ttl: '30s' })
console.log(`the next holder: ${next.state}, token ${next.token}`)

await Promise.all([first.close(), second.close()])
await store.close()
