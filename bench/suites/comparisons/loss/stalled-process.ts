/**
 * A process that holds a lock while its event loop is blocked for longer than the ttl. Reports how
 * many milliseconds after that it still believes: 0 if the first statement knew.
 */
import { LOCKERS, type LockerName } from '../../../lockers/index.js'

// The parent's channel keeps it running.
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
