/**
 * Many leases with one deadline: how long after it all are gone, and what that does to renewals of
 * others meanwhile. etcd ends a thousand a second by design, so it is asked for the smaller storm only;
 * its ttl is in whole seconds, and counted is from the last deadline.
 */
import { compareFigures } from '../../measure/compare.js'
import type { Row } from '../../measure/rows.js'
import { etcdExpirer, ourExpirer, redisExpirer } from './expirers.js'
import { stormFigures, stormOf } from './measure-storm.js'

const rows: Row[] = []
for (const count of [10_000, 50_000]) {
  const expirers = [
    await ourExpirer(),
    await redisExpirer(),
    count === 10_000 ? await etcdExpirer() : undefined,
  ]
  const [ours, ...peers] = expirers.map((one) => one && stormOf(one, count))
  const [name, figures] = [`a storm of ${count}`, stormFigures(count)]
  rows.push(...(await compareFigures({ name, figures, ours: ours!, peers, warmUp: false })))
  await Promise.all(expirers.map((one) => one?.end()))
}
console.log(JSON.stringify(rows))
