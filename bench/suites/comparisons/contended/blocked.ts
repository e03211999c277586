/**
 * The cost of 32 waiters while nothing happens: commands from clients, and processor time. Commands
 * within a script do not count. The two are measured one after the other, because monitoring
 * commands costs Redis some time.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { startRedis } from '../../../engines/start.js'
import { LOCKERS, type Locker, type LockerName } from '../../../lockers/index.js'
import { compareFigures, measureCpu, type Peer } from '../../../measure/compare.js'
import { startServer } from '../../parts/remote/processes.js'
import { openMany, WaiterQueue } from './waiter-queue.js'

const TTL = 30_000
const BLOCKED_MS = 1500
const opened: Locker[] = []
let keys = 0

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function candidate(
  name: LockerName,
  { port, pid }: { readonly port: number; readonly pid: number },
  countFor: (ms: number) => Promise<number>,
): Promise<Peer> {
  const lockers = await openMany(() => LOCKERS[name]({ port, ttl: TTL }))
  opened.push(...lockers)
  const run = async () => {
    const queue = await WaiterQueue.form(lockers, `blocked/${++keys}`)
    const count = await countFor(BLOCKED_MS)
    const spent = measureCpu([pid])
    await rest(BLOCKED_MS)
    const { client, server = 0 } = spent(BLOCKED_MS / 1000)
    await queue.drain()
    return { values: [count / (BLOCKED_MS / 1000), (client + server) / 1000] }
  }
  return { name, run }
}

/** Redis reports each command and its origin; commands of a script come from `lua`. */
async function redisCommands(port: number, ms: number): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  socket.setEncoding('latin1').write('MONITOR\r\n')
  await once(socket, 'data')
  let received = ''
  socket.on('data', (text) => {
    received += text
  })
  await rest(ms)
  socket.destroy()
  return received
    .split('\r\n')
    .filter((queue) => queue.startsWith('+') && !queue.includes(' lua] ')).length
}

async function ourRequests(url: string, ms: number): Promise<number> {
  const total = async () => {
    const text = await (await fetch(`${url}/metrics`)).text()
    return Number(/^leasehold_requests_total (\d+)/m.exec(text)![1])
  }
  const before = await total()
  await rest(ms)
  return (await total()) - before
}

const server = await startServer('memory')
const redis = await startRedis(false)
const ours = await candidate('our server', server, (ms) => ourRequests(server.url, ms))
const names: readonly LockerName[] = [
  'redis-semaphore',
  'redlock 4',
  'redlock 5',
  'verrou',
  'simple-redis-mutex',
]
const peers = redis
  ? await Promise.all(
      names.map((name) => candidate(name, redis, (ms) => redisCommands(redis.port, ms))),
    )
  : []
const rows = await compareFigures({
  name: 'while 32 wait',
  figures: [
    { name: 'commands while 32 wait', unit: 'commands/s', better: 'less' },
    { name: 'processor of client and server while 32 wait', unit: 'ms/s', better: 'less' },
  ],
  ours,
  peers,
})
await Promise.all(opened.map((locker) => locker.close()))
await Promise.all([server.end(), redis?.end()])
console.log(JSON.stringify(rows))
