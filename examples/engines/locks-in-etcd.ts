import { Leasehold } from 'leasehold'
import { etcdStore } from 'leasehold/etcd'

/**
 * Two processes that share locks in etcd, here as two clients. Give the addresses of its members, with
 * commas between:
 *
 *   node examples/dist/engines/locks-in-etcd.js 127.0.0.1:2379
 */
const endpoints = process.argv[2]!
const one = await Leasehold.open(await etcdStore({ endpoints }), { holder: 'one' })
const two = await Leasehold.open(await etcdStore({ endpoints }), { holder: 'two' })

const lock = await one.lock('reports/2026-11', { ttl: '10s' })
console.log(`one holds it: ${lock.held}`)
const next = two.lock('reports/2026-11', { ttl: '10s', wait: '30s' })
await lock.release()
console.log(`two holds it next, with a higher token: ${(await next).token > lock.claimToken}`)

await one.close()
await two.close()
