/**
 * A process joins a log in etcd that has many leases and a snapshot: how long until its first read?
 * Each run uses a new process, whose start does not count.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { etcdLog } from 'leasehold/etcd'
import { replicaStore } from 'leasehold/replica'
import { fillOurs } from '../../../engines/fill.js'
import { startEtcd } from '../../../engines/start.js'
import { compare } from '../../../measure/compare.js'
import { atMost, type Row } from '../../../measure/rows.js'

const LEASES = 100_000
const JOIN_PROCESS = fileURLToPath(new URL('./join-process.js', import.meta.url))

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const rows: Row[] = []
const engine = await startEtcd()
if (engine) {
  const endpoints = `127.0.0.1:${engine.port}`
  const log = await etcdLog({ endpoints, timeout: '60s' })
  // This many leases would not trigger a snapshot by themselves.
  const store = await replicaStore(log, { timeout: 60_000, snapshotBytes: 1 << 20 })
  process.stderr.write('  join: filling\n')
  await fillOurs(store, { count: LEASES, ttl: 3_600_000, prefix: 'many/' })
  for (let tries = 0; !(await log.loadSnapshot()); tries++) {
    if (tries === 100) throw new Error('there is no snapshot')
    await rest(100)
  }
  const run = async () => {
    const joiner = fork(JOIN_PROCESS, [endpoints, `many/${LEASES - 1}`])
    const failed = once(joiner, 'exit').then(() => Promise.reject(new Error('it did not join')))
    const [value] = await Promise.race([once(joiner, 'message'), failed])
    failed.catch(() => {})
    joiner.disconnect()
    await once(joiner, 'exit')
    return { value: Number(value) }
  }
  rows.push(
    ...(await compare({
      name: `joining a log with ${LEASES.toLocaleString('en')} leases, until the first read`,
      unit: 'ms',
      better: 'less',
      goal: atMost(2000),
      ours: { name: 'ours', run },
      peers: [],
      warmUp: false,
    })),
  )
  await store.close()
  await engine.end()
}
console.log(JSON.stringify(rows))
