import { Redis } from 'ioredis'
import { Leasehold } from 'leasehold'
import { redisStore } from 'leasehold/redis'
import { createClient } from 'redis'

/**
 * Two processes that share locks in Redis, here as two clients: one with `ioredis`, the other with
 * `redis`. Give the address of a Redis:
 *
 *   node examples/dist/engines/locks-in-redis.js redis://127.0.0.1:6379
 */
const url = process.argv[2] ?? 'redis://127.0.0.1:6379'
const io = new Redis(url)
// Both libraries connect again by themselves; without this, a broken connection ends the process.
io.on('error', (error) => console.error(error.message))
const node = createClient({ url })
node.on('error', (error) => console.error(error.message))
await node.connect()

const one = await Leasehold.open(await redisStore(io), { holder: 'one' })
const two = await Leasehold.open(await redisStore(node), { holder: 'two' })

const lock = await one.lock('reports/2026-11', { ttl: '30s' })
console.log(`one holds it: ${lock.held}`)
const next = two.lock('reports/2026-11', { ttl: '30s', wait: '10s' })
await lock.release()
console.log(`two holds it next, with a higher token: ${(await next).token > lock.claimToken}`)

await one.close()
await two.close()
io.disconnect()
node.destroy()
