import { isLeaseholdError } from 'leasehold'
import { redisFence } from 'leasehold/fence'
import { createClient } from 'redis'

/**
 * A value in Redis that only the newest holder can set. Give the address of a Redis:
 *
 *   node examples/dist/engines/fenced-redis.js redis://127.0.0.1:6379
 */
const client = await createClient({ url: process.argv[2] ?? 'redis://127.0.0.1:6379' }).connect()
const fence = redisFence(client)

// The check and the SET are one script: nothing can come between them.
await fence.set('{report}', 10, '{report}:text', 'written by ten')
console.log('the newer holder writes with token 10')

try {
  await fence.set('{report}', 9, '{report}:text', 'written by nine')
} catch (error) {
  if (!isLeaseholdError(error, 'stale-token')) throw error
  console.log(`the late one is refused: ${error.code}, it has seen ${error.highest}`)
}

console.log(`the report reads: ${await client.get('{report}:text')}`)
client.destroy()
