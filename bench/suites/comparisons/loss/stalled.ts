/**
 * The event loop of a holder with a ttl of 2 s is blocked for 3 s, as by a long computation: how
 * long after that does the holder still consider the lock its own? The ttl is already over at its
 * first statement.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startEtcd, startRedis } from '../../../engines/start.js'
import type { LockerName } from '../../../lockers/index.js'
import { compare, type Peer } from '../../../measure/compare.js'
import { atMost } from '../../../measure/rows.js'
import { startServer } from '../../parts/remote/processes.js'

const TTL = 2000
const STALL_MS = 3000
const PROGRAM = fileURLToPath(new URL('./stalled-process.js', import.meta.url))

let keys = 0
const failed = () => Promise.reject(new Error('a holder ended by itself'))

function candidate(name: LockerName, port: number): Peer {
  const run = async () => {
    const key = `stall-${++keys}`
    const child = fork(PROGRAM, [name, String(port), String(TTL), String(STALL_MS), key], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const ended = once(child, 'exit')
    const [believed] = await Promise.race([once(child, 'message'), ended.then(failed)])
    await ended
    return { value: Number(believed) }
  }
  return { name, run }
}

const server = await startServer('file')
const [redis, etcd] = await Promise.all([startRedis(), startEtcd()])
const rows = await compare({
  name: 'after a stall of its process: the holder believes for',
  unit: 'ms',
  better: 'less',
  goal: atMost(0),
  ours: candidate('our server', server.port),
  peers: [
    etcd && candidate('etcd3', etcd.port),
    redis && candidate('redis-semaphore', redis.port),
    redis && candidate('redlock 5', redis.port),
    redis && candidate('verrou', redis.port),
  ],
  together: true,
  warmUp: false,
})
await Promise.all([server, redis, etcd].map((one) => one?.end()))
console.log(JSON.stringify(rows))
