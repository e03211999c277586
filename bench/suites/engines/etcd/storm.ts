/**
 * Many leases on a log in etcd with one deadline: how long until all have ended, and how slow are
 * the renewals of others meanwhile? An end counts when it was read back from etcd's log. etcd
 * itself ends a thousand leases a second by design, so it gets only the smaller storm.
 */
import { compareFigures } from '../../../measure/compare.js'
import { atMost, type Row } from '../../../measure/rows.js'
import { etcdExpirer, ourEtcdExpirer } from '../../comparisons/expiry/expirers.js'
import { stormFigures, stormOf } from '../../comparisons/expiry/measure-storm.js'

const rows: Row[] = []
for (const count of [10_000, 50_000]) {
  const ours = await ourEtcdExpirer()
  if (!ours) break
  const theirs = count === 10_000 ? await etcdExpirer() : undefined
  rows.push(
    ...(await compareFigures({
      name: `a storm of ${count}`,
      figures: stormFigures(count, count === 50_000 ? atMost(1000) : undefined),
      ours: stormOf(ours, count),
      peers: [theirs && stormOf(theirs, count)],
      warmUp: false,
    })),
  )
  await ours.end()
  await theirs?.end()
}
console.log(JSON.stringify(rows))
