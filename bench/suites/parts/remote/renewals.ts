/** Renewals over one connection, a thousand leases in a call, as our client sends them. */
import { remoteStore } from 'leasehold/remote'
import { compare } from '../../../measure/compare.js'
import { atLeast, perSecondAsync } from '../../../measure/rows.js'
import { startEcho, startServer } from './processes.js'

const LEASES = 20_000
const BATCH = 1000
const TIMES = 20

const server = await startServer('memory')
const echo = await startEcho()
const store = await remoteStore(server.url)
const granted = await Promise.all(
  Array.from({ length: LEASES }, () => store.grant({ holder: 'bench', ttl: 600_000 })),
)
const leases = granted.map((it) => (it.outcome === 'granted' ? it.lease : ''))
const batches = Array.from({ length: LEASES / BATCH }, (_, at) =>
  leases.slice(at * BATCH, (at + 1) * BATCH),
)

function renewed(): Promise<number> {
  return perSecondAsync(LEASES * TIMES, async () => {
    for (let time = 0; time < TIMES; time++) {
      const answers = await Promise.all(batches.map((batch) => store.renew(batch)))
      if (answers.some(({ lost }) => lost.length > 0)) throw new Error('lost')
    }
  })
}

function echoed(): Promise<number> {
  const frame = JSON.stringify(batches)
  return perSecondAsync(LEASES * TIMES, async () => {
    for (let time = 0; time < TIMES; time++) await echo.send(frame)
  })
}

const count = LEASES * TIMES
const rows = await compare({
  name: 'renewals over one connection',
  unit: 'leases/s',
  better: 'more',
  goal: atLeast(500_000),
  ours: { name: 'ours', run: async () => ({ value: await renewed(), count }), pids: [server.pid] },
  peers: [
    {
      name: 'an echo of the same lease ids',
      limit: true,
      run: async () => ({ value: await echoed(), count }),
    },
  ],
})
await store.close()
await Promise.all([server.end(), echo.end()])
console.log(JSON.stringify(rows))
