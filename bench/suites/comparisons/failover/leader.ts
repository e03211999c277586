/** A process that leads until it is killed. */
import { LOCKERS, type LockerName } from '../../../lockers/index.js'

// The parent's channel keeps it running.
process.on('disconnect', () => process.exit())
const [name, port, ttl, key] = process.argv.slice(2) as [LockerName, string, string, string]
const locker = await LOCKERS[name]({ port: Number(port), ttl: Number(ttl) })
await locker.keep(key)
process.send!('leading')
