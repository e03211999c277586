/** One call after the other: the time of each, against a frame that is only sent back. */
import { remoteStore } from 'leasehold/remote'
import { compare } from '../../../measure/compare.js'
import { medianLatency } from '../../../measure/latency-and-throughput.js'
import { startEcho, startServer } from './processes.js'

const RUN_MS = 400
const FRAME = '[[1234567,"read",{"key":"jobs/1/2"}]]'

const echo = await startEcho()
const [memory, file] = await Promise.all([startServer('memory'), startServer('file')])
const stores = await Promise.all([remoteStore(memory.url), remoteStore(file.url)])
const claims = await Promise.all(
  stores.map(async (store) => {
    const granted = await store.grant({ holder: 'bench', ttl: 600_000 })
    if (granted.outcome !== 'granted') throw new Error('not granted')
    const { lease } = granted
    let number = 0
    return () => store.claim({ lease, claims: [{ key: `k/${++number}` }] })
  }),
)
const rows = await compare({
  name: 'one call through the server, p50',
  unit: 'µs',
  better: 'less',
  ours: [
    {
      name: 'a reading, memory',
      run: () => medianLatency(() => stores[0]!.read({ key: 'nothing' }), RUN_MS),
      pids: [memory.pid],
    },
    { name: 'a claim, memory', run: () => medianLatency(claims[0]!, RUN_MS), pids: [memory.pid] },
    { name: 'a claim, file', run: () => medianLatency(claims[1]!, RUN_MS), pids: [file.pid] },
  ],
  peers: [
    {
      name: 'a round trip of an echo',
      limit: true,
      run: () => medianLatency(() => echo.send(FRAME), RUN_MS),
    },
  ],
})
await Promise.all(stores.map((store) => store.close()))
await Promise.all([memory.end(), file.end(), echo.end()])
console.log(JSON.stringify(rows))
