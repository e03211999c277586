/**
 * 10,000 connected clients with a heartbeat every 5 s: which share of a core does the server need?
 * Both cannot be connected at once, so the bound is measured after ours, and compared as a whole.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { cpuTime, residentBytes } from '../../../machine/process-usage.js'
import { atMost, median, rounds, row, versus } from '../../../measure/rows.js'
import { type Started, startEchoServer, startServer } from '../remote/processes.js'

const CLIENTS = 10_000
const PROCESSES = 4
const EVERY_MS = 5000
const ROUNDS = 5
const ROUND_MS = 10_000
const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

interface Load {
  /** Shares of a core per round. */
  readonly shares: readonly number[]
  readonly kibPerClient: number
}

async function load(server: Started, kind: string): Promise<Load> {
  const alone = residentBytes(server.pid)
  const program = fileURLToPath(new URL('./heartbeats.js', import.meta.url))
  const args = [server.url, String(CLIENTS / PROCESSES), String(EVERY_MS), kind]
  const fleets = Array.from({ length: PROCESSES }, () => fork(program, args))
  await Promise.all(fleets.map((fleet) => once(fleet, 'message')))
  await rest(EVERY_MS)
  const shares = await rounds(ROUNDS, async () => {
    const before = cpuTime(server.pid)
    const start = performance.now()
    await rest(ROUND_MS)
    return (cpuTime(server.pid) - before) / 1000 / (performance.now() - start)
  })
  const kibPerClient = (residentBytes(server.pid) - alone) / 1024 / CLIENTS
  const failures = await Promise.all(
    fleets.map(async (fleet) => {
      const answer = once(fleet, 'message')
      fleet.send('end')
      const [failed] = await answer
      return Number(failed)
    }),
  )
  const failed = failures.reduce((sum, each) => sum + each, 0)
  if (failed > 0) throw new Error(`${failed} heartbeats failed`)
  await server.end()
  return { shares, kibPerClient }
}

const ours = await load(await startServer('file'), 'lease')
const echo = await load(await startEchoServer(), 'echo')
const name = '10,000 clients, a heartbeat each 5 s'
console.log(
  JSON.stringify([
    row(name, 'of a core', ours.shares, atMost(0.1)),
    versus(name, [median(ours.shares)], [median(echo.shares)], {
      unit: 'of a core',
      better: 'less',
      peerName: 'a WebSocket echo of the same frames',
      limit: true,
    }),
    row('memory of one connected client', 'KiB', [ours.kibPerClient]),
  ]),
)
