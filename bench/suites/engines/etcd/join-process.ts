/** A process that joins a log in etcd, reads a key, and reports how many milliseconds that took. */
import { etcdStore } from 'leasehold/etcd'

const [endpoints, key] = process.argv.slice(2) as [string, string]
process.on('disconnect', () => process.exit())
const start = performance.now()
const store = await etcdStore({ endpoints, timeout: '60s' })
const { holders } = await store.read({ key })
if (holders !== 1) throw new Error(`${key} has ${holders} holders`)
process.send!(performance.now() - start)
