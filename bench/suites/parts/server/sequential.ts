/** One durable lock after the other, against what it cannot avoid: a sync and a round trip. */
import { remoteStore } from 'leasehold/remote'
import { openDisk } from '../../../machine/disk.js'
import { compare } from '../../../measure/compare.js'
import { medianLatency } from '../../../measure/latency-and-throughput.js'
import { startEcho, startServer } from '../remote/processes.js'

const RUN_MS = 200
/** A claim, as sent. */
const FRAME = '[[1234567,"claim","0.1234567",["jobs/12/34"],0,"AbCdEfGhIjKlMnOpQrStUv-123456"]]'

const disk = openDisk()
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
const rows = await compare({
  name: 'sequential durable lock, p50',
  unit: 'µs',
  better: 'less',
  ours: { name: 'ours', run: () => medianLatency(lock, RUN_MS), pids: [server.pid] },
  peers: [
    {
      name: 'a round trip of an echo and an fdatasync',
      // Within 1.5 times.
      goal: 1 / 1.5,
      limit: true,
      run: () =>
        medianLatency(async () => {
          await echo.send(FRAME)
          disk.sync()
        }, RUN_MS),
    },
    {
      name: 'an fdatasync alone',
      limit: true,
      run: () => medianLatency(async () => disk.sync(), RUN_MS),
    },
    {
      name: 'a round trip alone',
      limit: true,
      run: () => medianLatency(() => echo.send(FRAME), RUN_MS),
    },
  ],
  rounds: 15,
})
await store.close()
await Promise.all([server.end(), echo.end()])
disk.end()
console.log(JSON.stringify(rows))
