/** 10,000 connected clients with a heartbeat each 5 s: what share of a core the server needs. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { cpuTime, residentBytes } from '../processor.js'
import { startServer } from '../remote/processes.js'
import { atMost, rounds, row } from '../rows.js'

const CLIENTS = 10_000
const PROCESSES = 4
const EVERY_MS = 5000
const ROUNDS = 5
const ROUND_MS = 10_000
const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const server = await startServer('file')
const alone = residentBytes(server.pid)
const program = fileURLToPath(new URL('./heartbeats.js', import.meta.url))
const args = [server.url, String(CLIENTS / PROCESSES), String(EVERY_MS)]
const fleets = Array.from({ length: PROCESSES }, () => fork(program, args))
await Promise.all(fleets.map((fleet) => once(fleet, 'message')))
await rest(EVERY_MS)
const shares = await rounds(ROUNDS, async () => {
  const before = cpuTime(server.pid)
  const start = performance.now()
  await rest(ROUND_MS)
  return (cpuTime(server.pid) - before) / 1000 / (performance.now() - start)
})
const withAll = residentBytes(server.pid)
const failures = await Promise.all(
  fleets.map(async (fleet) => {
    const answer = once(fleet, 'message')
    fleet.send('end')
    const [failed] = await answer
    return Number(failed)
  }),
)
const failed = failures.reduce((sum, each) => sum + each, 0)
if (failed > 0) throw new Error(`${failed} renewals failed`)
await server.end()
console.log(
  JSON.stringify([
    row('10,000 clients, a heartbeat each 5 s', 'of a core', shares, atMost(0.1)),
    row('memory of one connected client', 'KiB', [(withAll - alone) / 1024 / CLIENTS]),
  ]),
)
