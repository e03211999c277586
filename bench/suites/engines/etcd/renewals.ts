/**
 * One process keeps many locks, each with its own lease: how many entries per second does it add to
 * the log in etcd? Each entry is one change of etcd, so etcd's revision counts them.
 */
import { Leasehold, type Lock } from 'leasehold'
import { etcdStore } from 'leasehold/etcd'
import { EtcdClient } from '../../../engines/etcd-client.js'
import { forEachConcurrently } from '../../../engines/fill.js'
import { startEtcd } from '../../../engines/start.js'
import { compareFigures } from '../../../measure/compare.js'
import { atMost, type Row } from '../../../measure/rows.js'

const LEASES = 100_000
const TTL = 10_000

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const rows: Row[] = []
const engine = await startEtcd()
if (engine) {
  const client = new EtcdClient(engine.port)
  const store = await etcdStore({ endpoints: `127.0.0.1:${engine.port}`, timeout: '60s' })
  const leasehold = await Leasehold.open(store, { holder: 'bench', callTimeout: '60s' })
  const locks: Lock[] = []
  process.stderr.write('  renewals: filling\n')
  await forEachConcurrently(LEASES, 2000, async (number) => {
    // A distinct label gives each lock its own lease.
    const options = { ttl: TTL, labels: { kept: 'true' } }
    locks.push(await leasehold.lock(`kept/${number}`, options))
  })
  const run = async () => {
    const [before, start] = [await client.revision(), performance.now()]
    const { user, system } = process.cpuUsage()
    await rest(TTL)
    const spent = process.cpuUsage({ user, system })
    const ms = performance.now() - start
    const entries = (await client.revision()) - before
    const lost = locks.filter((lock) => !lock.held).length
    if (lost > 0) throw new Error(`${lost} leases were lost`)
    return { values: [(entries / ms) * 1000, (spent.user + spent.system) / 1000 / ms] }
  }
  const name = `${LEASES.toLocaleString('en')} leases of ${TTL / 1000} s, kept by one process`
  rows.push(
    ...(await compareFigures({
      name,
      figures: [
        { name: `${name}: entries`, unit: 'entries/s', better: 'less', goal: atMost(20) },
        { name: `${name}: that process`, unit: 'of a core', better: 'less' },
      ],
      ours: { name: 'ours', run },
      peers: [],
    })),
  )
  await leasehold.close()
  await store.close()
  client.close()
  await engine.end()
}
console.log(JSON.stringify(rows))
