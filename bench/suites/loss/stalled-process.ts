/**
 * A process that holds a lock, and whose event loop is blocked for longer than the ttl. Tells how long
 * after that it still believes, in milliseconds: 0 where the first statement knew.
 */
import { LOCKERS, type LockerName } from '../../lockers/index.js'

// Kept running by whoever started it, and not longer.
process.on('disconnect', () => process.exit())

const GIVE_UP_MS = 5000
const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const [name, port, ttl, stall, key] = process.argv.slice(2) as [LockerName, ...string[]]
const locker = await LOCKERS[name]({ port: Number(port), ttl: Number(ttl) })
const held = await locker.keep(key!)
await rest(300)
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(stall))
const start = performance.now()
let believed = 0
while (held.believes() && believed < GIVE_UP_MS) {
  await rest(1)
  believed = performance.now() - start
}
process.send!(believed, () => process.exit())
