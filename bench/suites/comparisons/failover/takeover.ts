/**
 * A leader in its own process is killed at different moments between two of its renewals. The next
 * leader, which already waits, writes as soon as it leads. Only libraries that keep their locks
 * alive can lead: not redlock 4, verrou and simple-redis-mutex. PostgreSQL's advisory lock belongs
 * to a connection, like our tied lease: both end when the system closes the connection. The others
 * wait for the end of the ttl.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isLeaseholdError } from 'leasehold/port'
import { startEtcd, startPostgres, startRedis, startZookeeper } from '../../../engines/start.js'
import {
  type Held,
  LOCKERS,
  type Locker,
  type LockerName,
  onSameEngine,
} from '../../../lockers/index.js'
import { compare, type Peer } from '../../../measure/compare.js'
import { startServer } from '../../parts/remote/processes.js'

const TTL = 2000
const ROUNDS = 5
const LEADER = fileURLToPath(new URL('./leader.js', import.meta.url))

const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
let keys = 0

const failed = () => Promise.reject(new Error('a leader ended by itself'))

/** On an overloaded machine a waiter may lose its place in the queue: it starts again. */
async function led(next: Locker, key: string): Promise<Held> {
  for (;;) {
    try {
      return await next.lock(key)
    } catch (error) {
      if (!isLeaseholdError(error, 'lost')) throw error
    }
  }
}

function candidate(name: LockerName, port: number): Peer {
  let round = 0
  const run = async () => {
    const key = `leader-${++keys}`
    const leader = fork(LEADER, [name, String(port), String(TTL), key], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    await Promise.race([once(leader, 'message'), once(leader, 'exit').then(failed)])
    const next = await LOCKERS[name]({ port, ttl: TTL })
    const wrote = led(next, key).then((term) => {
      writeFileSync(join(folder, key), name)
      return { term, at: performance.now() }
    })
    await rest(TTL * (0.5 + ((round++ * 0.37) % 1)))
    const killed = performance.now()
    leader.kill('SIGKILL')
    const { term, at } = await wrote
    await term.release()
    await next.close()
    return { value: at - killed }
  }
  return { name, run }
}

const server = await startServer('file')
const [redis, postgres] = await Promise.all([startRedis(), startPostgres()])
const [etcd, zookeeper] = await Promise.all([startEtcd(), startZookeeper()])
const { port } = server
const onEngines = [
  redis && candidate('our Redis store', redis.port),
  postgres && candidate('our PostgreSQL store', postgres.port),
  etcd && candidate('our etcd store', etcd.port),
  zookeeper && candidate('our ZooKeeper store', zookeeper.port),
].filter((one) => one !== undefined)
const figure = {
  name: 'from kill -9 to the next first write',
  unit: 'ms',
  better: 'less',
  peers: [
    redis && candidate('redlock 5', redis.port),
    redis && candidate('redis-semaphore', redis.port),
    etcd && candidate('etcd3 election', etcd.port),
    zookeeper && candidate('ZooKeeper recipe', zookeeper.port),
    postgres && candidate('advisory-lock', postgres.port),
  ],
  rounds: ROUNDS,
  together: true,
} as const
const elections = [candidate('our election, tied', port), candidate('our election', port)]
const rows = await compare({ ...figure, ours: elections })
// Not together with the others: so many processes would disturb each other.
if (onEngines.length > 0) rows.push(...(await compare({ ...figure, ours: onEngines })))
await Promise.all([server, redis, postgres, etcd, zookeeper].map((one) => one?.end()))
rmSync(folder, { recursive: true })
console.log(JSON.stringify(rows.filter(onSameEngine)))
