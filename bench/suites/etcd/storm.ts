/**
 * Many leases on a log in etcd with one deadline: how long after it all are gone, and what that does to
 * renewals of others meanwhile. The ends are read back from etcd's log before they count. etcd's own
 * leases end a thousand a second by design, so etcd is asked for the smaller storm only.
 */
import { compareFigures } from '../../measure/compare.js'
import { atMost, type Row } from '../../measure/rows.js'
import { etcdExpirer, ourEtcdExpirer } from '../expiry/expirers.js'
import { stormFigures, stormOf } from '../expiry/measure-storm.js'

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
