/**
 * The event loop of a holder with a ttl of 2 s is blocked for 3 s, as by a long computation: how long
 * after that the holder still calls the lock its own. On its first statement the ttl is over already.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { contest, type Peer } from '../contest.js'
import { startEtcd, startRedis } from '../engines.js'
import type { LockerName } from '../lockers/index.js'
import { startServer } from '../remote/processes.js'
import { atMost } from '../rows.js'

const TTL = 2000
const STALL_MS = 3000
const PROGRAM = fileURLToPath(new URL('./stall.js', import.meta.url))

let keys = 0
const failed = () => Promise.reject(new Error('a holder ended by itself'))

function contestant(name: LockerName, port: number): Peer {
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
const rows = await contest({
  name: 'after a stall of its process: the holder believes for',
  unit: 'ms',
  better: 'less',
  goal: atMost(0),
  ours: contestant('our server', server.port),
  peers: [
    etcd && contestant('etcd3', etcd.port),
    redis && contestant('redis-semaphore', redis.port),
    redis && contestant('redlock 5', redis.port),
    redis && contestant('verrou', redis.port),
  ],
  together: true,
  warmUp: false,
})
await Promise.all([server, redis, etcd].map((one) => one?.end()))
console.log(JSON.stringify(rows))
