// Run it: npm run build && node examples/dist/one-at-a-time.js
import { setTimeout as pause } from 'node:timers/promises'
import { Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'

/**
 * Three instances of a service are asked to run the same job. One of them runs it; the others see
 * which one does, and leave it alone. A fourth wants to run it afterwards, and waits in the queue.
 */
const store = memoryStore()

async function instance(holder: string): Promise<void> {
  await using leasehold = await Leasehold.open(store, { holder })
  await using attempt = await leasehold.tryLock('jobs/invoices', { ttl: '10s', value: 'run 17' })
  if (attempt.conflict) {
    const { holder: other, value } = attempt.conflict
    console.log(`${holder}: ${other} does ${value} already`)
    return
  }
  console.log(`${holder}: doing the job with token ${attempt.lock.token}`)
  await pause(50)
  console.log(`${holder}: done`)
}

async function patient(holder: string): Promise<void> {
  await using leasehold = await Leasehold.open(store, { holder })
  await leasehold.withLock('jobs/invoices', { wait: '5s' }, (lock) => {
    console.log(`${holder}: my turn, with token ${lock.token}`)
  })
}

await Promise.all([instance('one'), instance('two'), instance('three'), patient('four')])
await store.close()
