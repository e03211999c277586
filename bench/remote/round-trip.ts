/** One call after the other: how long each takes, against a frame that only comes back. */
import type { LeaseStore } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { percentile, type Row, row } from '../rows.js'
import { startEcho, startServer } from './processes.js'

const CALLS = 3000
const FRAME = '[[1234567,"read",{"key":"jobs/1/2"}]]'

async function timesOf(call: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < CALLS; i++) {
    const start = performance.now()
    await call()
    times.push((performance.now() - start) * 1000)
  }
  return times
}

function rowsOf(name: string, times: readonly number[]): Row[] {
  return [
    row(`${name}, p50`, 'µs', [percentile(times, 0.5)]),
    row(`${name}, p99`, 'µs', [percentile(times, 0.99)]),
  ]
}

async function locks(store: LeaseStore): Promise<number[]> {
  const granted = await store.grant({ holder: 'bench', ttl: 600_000 })
  if (granted.outcome !== 'granted') throw new Error('not granted')
  const { lease } = granted
  let number = 0
  return timesOf(() => store.claim({ lease, claims: [{ key: `k/${++number}` }] }))
}

const rows: Row[] = []
const echo = await startEcho()
await timesOf(() => echo.send(FRAME))
rows.push(...rowsOf('limit: round trip of an echo', await timesOf(() => echo.send(FRAME))))
for (const kind of ['memory', 'file'] as const) {
  const server = await startServer(kind)
  const store = await remoteStore(server.url)
  await timesOf(() => store.read({ key: 'nothing' }))
  if (kind === 'memory') {
    const reads = await timesOf(() => store.read({ key: 'nothing' }))
    rows.push(...rowsOf('a reading through the server', reads))
  }
  rows.push(...rowsOf(`a claim through the server, ${kind}`, await locks(store)))
  await store.close()
  await server.end()
}
await echo.end()
console.log(JSON.stringify(rows))
