import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isLeaseholdError, Leasehold } from 'leasehold'
import { fileFence } from 'leasehold/fence'
import { borrowStore } from '../life-of-a-lease/store-over-ipc.ts'

/**
 * Does everything right that a holder can do: takes the lock, checks that it still holds it, and
 * writes at once. Still, it is paused between the two.
 */
const [folder = '.', key = 'report', ttl = '1000'] = process.argv.slice(2)
process.on('disconnect', () => process.exit())

const leasehold = await Leasehold.open(await borrowStore(), { holder: 'alice' })
const fence = await fileFence(join(folder, 'fence'))
const lock = await leasehold.lock(key, { ttl: Number(ttl) })

const token = lock.token // The check of the lock: it is held.
process.send?.({ looked: token })
process.kill(process.pid, 'SIGSTOP') // Here the machine pauses her, for any length of time.

writeFileSync(join(folder, 'unguarded.txt'), `written by alice with token ${token}`)
let outcome = 'accepted'
try {
  const path = join(folder, 'guarded.txt')
  await fence.writeFile(key, token, path, `written by alice with token ${token}`)
} catch (error) {
  if (!isLeaseholdError(error, 'stale-token')) throw error
  outcome = error.message
}
process.send?.({ wrote: outcome, state: lock.state })

await fence.close()
await leasehold.close()
process.disconnect()
