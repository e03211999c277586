/** One durable lock after the other, against what it cannot do without: a sync and a round trip. */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { remoteStore } from 'leasehold/remote'
import { startEcho, startServer } from '../remote/processes.js'
import { atMost, percentile, row } from '../rows.js'

const ROUNDS = 15
const CALLS = 200
/** One record of the log, and a claim as it travels. */
const RECORD = Buffer.alloc(192, 1)
const FRAME = '[[1234567,"claim","0.1234567",["jobs/12/34"],0,"AbCdEfGhIjKlMnOpQrStUv-123456"]]'

/** The median of the times that calls take one after the other, in microseconds. */
async function median(call: (number: number) => unknown): Promise<number> {
  const times: number[] = []
  for (let number = 0; number < CALLS; number++) {
    const start = performance.now()
    await call(number)
    times.push((performance.now() - start) * 1000)
  }
  return percentile(times, 0.5)
}

const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
const file = openSync(join(folder, 'log'), 'w+')
writeSync(file, Buffer.alloc(CALLS * RECORD.length))
fdatasyncSync(file)
const echo = await startEcho()
const server = await startServer('file')
const store = await remoteStore(server.url)
const granted = await store.grant({ holder: 'bench', ttl: 600_000 })
if (granted.outcome !== 'granted') throw new Error('not granted')
const { lease } = granted

let number = 0
const lock = async () => {
  const request = `AbCdEfGhIjKlMnOpQrStUv-${++number}`
  await store.claim({ lease, claims: [{ key: `k/${number}` }], request })
}
const sync = (at: number) => {
  writeSync(file, RECORD, 0, RECORD.length, at * RECORD.length)
  fdatasyncSync(file)
}
const trip = () => echo.send(FRAME)

const locks: number[] = []
const syncs: number[] = []
const trips: number[] = []
await median(lock)
await median(trip)
for (let round = 0; round < ROUNDS; round++) {
  locks.push(await median(lock))
  syncs.push(await median(sync))
  trips.push(await median(trip))
}
await store.close()
await Promise.all([server.end(), echo.end()])
closeSync(file)
rmSync(folder, { recursive: true })
const ratios = locks.map((value, index) => value / (syncs[index]! + trips[index]!))
console.log(
  JSON.stringify([
    row('sequential durable lock, p50', 'µs', locks),
    row('limit: overwrite and fdatasync, p50', 'µs', syncs),
    row('limit: loopback round trip of an echo, p50', 'µs', trips),
    row('sequential lock against both together', 'x', ratios, atMost(1.5)),
  ]),
)
