/**
 * Lock and unlock on ZooKeeper, against the least that a lock in it can be: an ephemeral node that is
 * created and deleted, by node-zookeeper-client. All of it is on the disks of two of three before it
 * is answered.
 */
import { contest, type Peer } from '../contest.js'
import type { Row } from '../rows.js'
import { type Pair, pairsPerSecond } from '../server/pairs.js'
import { startEnsemble } from './ensemble.js'
import { openRaw, openStore } from './scene.js'

const rows: Row[] = []
const ensemble = await startEnsemble()
if (ensemble) {
  const servers = ensemble.map(({ port }) => `127.0.0.1:${port}`).join(',')
  const [ours, raw] = [await openStore(servers), await openRaw(servers)]
  for (const [inFlight, pairs, rawPairs, goal] of [
    [64, 12_800, 6000, 4],
    [512, 51_200, 6000, undefined],
    [1, 300, 300, undefined],
  ] as const) {
    const run = (pair: Pair, count: number) => async () => ({
      value: await pairsPerSecond(pair, inFlight, count),
      count,
    })
    const pids = ensemble.map(({ pid }) => pid)
    const pair = run(raw.pair, rawPairs)
    const peer: Peer = { name: 'create + delete', run: pair, pids, ...(goal && { goal }) }
    rows.push(
      ...(await contest({
        name: `claim + release, ${inFlight} in flight`,
        unit: 'pairs/s',
        better: 'more',
        ours: { name: 'ours', run: run(ours.pair, pairs), pids },
        peers: [peer],
      })),
    )
  }
  await ours.end()
  await raw.end()
  for (const member of ensemble) await member.end()
}
console.log(JSON.stringify(rows))
