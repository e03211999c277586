import { setTimeout as pause } from 'node:timers/promises'
import { Leasehold } from 'leasehold'
import { borrowStore } from './store-over-ipc.ts'

/**
 * Writes pages of a report while it holds the lock, each with its token. It knows nothing about
 * the others: it asks, waits in the queue, works, and releases.
 */
const [name = 'worker', key = 'reports', ttl = '2000', pages = '1'] = process.argv.slice(2)

// A worker without its parent has no store to ask.
process.on('disconnect', () => process.exit())

const leasehold = await Leasehold.open(await borrowStore(), { holder: name })
const lock = await leasehold.lock(key, { ttl: Number(ttl) })
process.send?.({ granted: lock.token })

for (let page = 1; page <= Number(pages) && lock.held; page++) {
  process.send?.({ write: { text: `page ${page} by ${name}`, token: lock.token } })
  await pause(700)
}

await lock.release()
await leasehold.close()
process.disconnect()
