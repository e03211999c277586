/** What it costs while 32 wait and nothing happens: commands of the engine, and processor time. */

import { once } from 'node:events'
import { connect } from 'node:net'
import { contests, type Peer } from '../contest.js'
import { startRedis } from '../engines.js'
import { LOCKERS, type Locker, type LockerName } from '../lockers/index.js'
import { cpuTime } from '../processor.js'
import { startServer } from '../remote/processes.js'
import { Line, many } from './line.js'

const TTL = 30_000
const BLOCKED_MS = 1500
const opened: Locker[] = []
let keys = 0

async function contestant(
  name: LockerName,
  { port, pid }: { readonly port: number; readonly pid: number },
  commands: () => Promise<number>,
): Promise<Peer> {
  const lockers = await many(() => LOCKERS[name]({ port, ttl: TTL }))
  opened.push(...lockers)
  const run = async () => {
    const line = await Line.form(lockers, `blocked/${++keys}`)
    const [asked, server] = [await commands(), cpuTime(pid)]
    const client = process.cpuUsage()
    const start = performance.now()
    await new Promise((resolve) => setTimeout(resolve, BLOCKED_MS))
    const seconds = (performance.now() - start) / 1000
    const { user, system } = process.cpuUsage(client)
    // One of the commands counted is the question itself.
    const count = Math.max(0, (await commands()) - asked - 1)
    const cpu = (user + system + cpuTime(pid) - server) / 1000
    await line.drain()
    return { values: [count / seconds, cpu / seconds] }
  }
  return { name, run }
}

async function redisCommands(port: number): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  socket.write('INFO stats\r\n')
  const [answer] = await once(socket, 'data')
  socket.destroy()
  return Number(/total_commands_processed:(\d+)/.exec(String(answer))![1])
}

async function ourRequests(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  // A page of metrics is no request on a stream, and does not count itself.
  return Number(/^leasehold_requests_total (\d+)/m.exec(text)![1]) + questions++
}
let questions = 0

const server = await startServer('memory')
const redis = await startRedis(false)
const at = { port: Number(new URL(server.url).port), pid: server.pid }
const ours = await contestant('our server', at, () => ourRequests(server.url))
const names: readonly LockerName[] = [
  'redis-semaphore',
  'redlock 4',
  'redlock 5',
  'verrou',
  'simple-redis-mutex',
]
const peers = redis
  ? await Promise.all(names.map((name) => contestant(name, redis, () => redisCommands(redis.port))))
  : []
const rows = await contests({
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
