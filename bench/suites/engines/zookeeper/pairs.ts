/**
 * Lock and unlock on ZooKeeper, against the minimum for a lock in it: an ephemeral node that
 * node-zookeeper-client creates and deletes. Every change is on the disks of two of three servers
 * before the answer.
 */
import { zookeeperStore } from 'leasehold/zookeeper'
import type { Row } from '../../../measure/rows.js'
import { compareLog } from '../logs/compare-log.js'
import { startEnsemble } from './ensemble.js'
import { openRaw } from './raw-lock.js'

const rows: Row[] = []
const ensemble = await startEnsemble()
if (ensemble) {
  const servers = ensemble.map(({ port }) => `127.0.0.1:${port}`).join(',')
  const raw = await openRaw(servers)
  rows.push(
    ...(await compareLog({
      engine: 'ZooKeeper',
      store: await zookeeperStore({ servers, timeout: '60s' }),
      rawName: 'create + delete',
      raw: raw.pair,
      pids: ensemble.map(({ pid }) => pid),
      runs: [
        [64, 12_800, 6000, 4],
        [512, 51_200, 6000, undefined],
        [1, 300, 300, undefined],
      ],
    })),
  )
  await raw.end()
  for (const member of ensemble) await member.end()
}
console.log(JSON.stringify(rows))
