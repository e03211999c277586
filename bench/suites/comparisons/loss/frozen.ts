/**
 * The store is frozen (SIGSTOP) for 8 s while a holder has a ttl of 2 s: how long does the holder
 * still consider the lock its own? If only this holder cannot reach the store, the store gives the
 * lock to another after the ttl. So a holder that believes longer shares the lock. verrou does not
 * renew and is polled (`isExpired`); the other libraries notify.
 */

import { type Engine, startEtcd, startRedis, startZookeeper } from '../../../engines/start.js'
import { LOCKERS, type LockerName, onSameEngine } from '../../../lockers/index.js'
import { compare, type Peer } from '../../../measure/compare.js'
import { atMost } from '../../../measure/rows.js'
import { startServer } from '../../parts/remote/processes.js'

const TTL = 2000
const FROZEN_MS = 8000
const GIVE_UP_MS = 12_000

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
let keys = 0

function candidate(name: LockerName, { port, pid }: { port: number; pid: number }): Peer {
  const run = async () => {
    const locker = await LOCKERS[name]({ port, ttl: TTL })
    const held = await locker.keep(`loss-${++keys}`)
    // Long enough for at least one renewal.
    if (name !== 'verrou') await rest(TTL)
    const start = performance.now()
    process.kill(pid, 'SIGSTOP')
    const thaw = setTimeout(() => process.kill(pid, 'SIGCONT'), FROZEN_MS)
    while (held.believes() && performance.now() - start < GIVE_UP_MS) await rest(2)
    const believed = performance.now() - start
    clearTimeout(thaw)
    process.kill(pid, 'SIGCONT')
    held.release().catch(() => {})
    await rest(200)
    await locker.close()
    return { value: believed }
  }
  return { name, run }
}

const server = await startServer('file')
const engines: Engine[] = []
async function on(start: () => Promise<Engine | undefined>, name: LockerName) {
  const engine = await start()
  if (engine) engines.push(engine)
  return engine && candidate(name, engine)
}
const rows = await compare({
  name: `a store frozen for ${FROZEN_MS / 1000} s: the holder believes for, counted up to ${GIVE_UP_MS / 1000} s`,
  unit: 'ms',
  better: 'less',
  // The store gives the lock away after the ttl.
  goal: atMost(TTL),
  ours: [
    candidate('our server', server),
    await on(startRedis, 'our Redis store'),
    await on(startEtcd, 'our etcd store'),
    await on(startZookeeper, 'our ZooKeeper store'),
  ].filter((one) => one !== undefined),
  peers: [
    await on(startEtcd, 'etcd3'),
    await on(startRedis, 'redis-semaphore'),
    await on(startRedis, 'redlock 5'),
    await on(startRedis, 'verrou'),
  ],
  together: true,
  warmUp: false,
})
await Promise.all([server, ...engines].map((one) => one.end()))
console.log(JSON.stringify(rows.filter(onSameEngine)))
// Do not wait for a library that still waits for an answer.
process.exit()
